// Digests of texts and files (XXH3, 128 bits): equal digests mean equal bytes. Not for secrets.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "engine/base/status.h"

namespace tally {

// Collects texts and numbers. Each text is added with its length, so that different lists of texts
// cannot give the same input.
class Digest {
 public:
  Digest();
  ~Digest();
  Digest(const Digest&) = delete;
  Digest& operator=(const Digest&) = delete;

  Digest& add(std::string_view text);
  Digest& add(uint64_t number);
  Digest& add_bytes(const void* bytes, size_t size);  // without their length
  // The digest as 32 hex digits.
  std::string hex() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

std::string digest_of(std::string_view text);
// The digest of a regular file's bytes. An error names the path and the reason.
Status digest_file(const std::string& path, std::string* hex);

}  // namespace tally
