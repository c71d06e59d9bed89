#include "engine/base/digest.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>
#include <xxhash.h>

#include <cerrno>
#include <vector>

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
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return file_error(path, "cannot read", errno);
  Digest digest;
  std::vector<char> buffer(1 << 20);
  Status status;
  for (;;) {
    const ssize_t got = read(fd, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) status = file_error(path, "cannot read", errno);
    if (got <= 0) break;
    digest.add_bytes(buffer.data(), static_cast<size_t>(got));
  }
  close(fd);
  if (status) *hex = digest.hex();
  return status;
}

}  // namespace tally
