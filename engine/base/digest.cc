#include "engine/base/digest.h"

#include <fmt/format.h>
#include <xxhash.h>

#include "engine/base/files.h"

namespace tally {

struct Digest::State {
  XXH3_state_t* xxh = XXH3_createState();
  State() { XXH3_128bits_reset(xxh); }
  ~State() { XXH3_freeState(xxh); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
};

Digest::Digest() : state_(std::make_unique<State>()) {}
Digest::~Digest() = default;

Digest& Digest::add_bytes(const void* bytes, size_t size) {
  XXH3_128bits_update(state_->xxh, bytes, size);
  return *this;
}

Digest& Digest::add(uint64_t number) {
  return add_bytes(&number, sizeof number);
}

Digest& Digest::add(std::string_view text) {
  add(static_cast<uint64_t>(text.size()));
  return add_bytes(text.data(), text.size());
}

std::string Digest::hex() const {
  const XXH128_hash_t hash = XXH3_128bits_digest(state_->xxh);
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

std::string digest_of(std::string_view text) {
  return Digest().add(text).hex();
}

Status digest_file(const std::string& path, std::string* hex) {
  Digest digest;
  Status status = read_file(
      path, [&digest](const char* bytes, size_t count) { digest.add_bytes(bytes, count); });
  if (status) *hex = digest.hex();
  return status;
}

}  // namespace tally
