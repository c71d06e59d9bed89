// SHA-256 (FIPS 180-4): the digests that a stranger checks with sha256sum. Digest (digest.h) is
// faster and tells whether a file has changed; nobody else has a program for it.
//
// OpenSSL's would make the engine's static file three times as large for these lines.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "engine/base/status.h"

namespace tally {

class Sha256 {
 public:
  void add(const char* bytes, size_t count);
  // The digest of all bytes, as 64 hex digits. No bytes are added afterwards.
  std::string hex();

 private:
  void take_block(const unsigned char* block);

  std::array<uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                    0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<unsigned char, 64> block_{};
  size_t in_block_ = 0;
  uint64_t size_ = 0;
};

std::string sha256_of(const std::string& bytes);
Status sha256_file(const std::string& path, std::string* hex);

}  // namespace tally
