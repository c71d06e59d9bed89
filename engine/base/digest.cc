#include "engine/base/digest.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <optional>
#include <vector>

#include "engine/base/files.h"
#include "engine/base/presence.h"

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

namespace {

constexpr long long kNano = 1000000000;
constexpr long long kEnds = 32LL << 20;
constexpr long long kPiece = 256 << 10;

bool add_bytes(int file, long long from, long long to, Digest& digest) {
  std::vector<char> piece(static_cast<size_t>(std::min(kPiece, to - from)));
  while (from < to) {
    const auto wanted = static_cast<size_t>(std::min(kPiece, to - from));
    const ssize_t got = pread(file, piece.data(), wanted, from);
    if (got < 0 && errno == EINTR) continue;
    if (got == 0) errno = EAGAIN;  // it has become shorter: somebody is writing it anew
    if (got <= 0) return false;
    digest.add_bytes(piece.data(), static_cast<size_t>(got));
    from += got;
  }
  return true;
}

bool digest_of_part(int file, long long from, long long to, std::string* hex) {
  Digest digest;
  digest.add(static_cast<uint64_t>(to - from));
  const bool whole = to - from <= 2 * kEnds;
  const bool read = whole ? add_bytes(file, from, to, digest)
                          : add_bytes(file, from, from + kEnds, digest) &&
                                add_bytes(file, to - kEnds, to, digest);
  if (read) *hex = digest.hex();
  return read;
}

// The nanoseconds of a timespec or statx_timestamp.
template <typename Time>
long long in_ns(const Time& time) {
  return time.tv_sec * kNano + time.tv_nsec;
}

}  // namespace

FileStamp stamp_of(const struct stat& info) {
  if (!S_ISREG(info.st_mode)) return {};
  return {info.st_ino, info.st_size, in_ns(info.st_mtim)};
}

Status file_stamp(const std::string& path, FileStamp* stamp) {
  std::optional<struct stat> found;
  Status looked = look_at(path, &found);
  *stamp = found ? stamp_of(*found) : FileStamp{};
  return looked;
}

Status file_time_now(int file, long long* ns) {
  constexpr int kTries = 20;
  constexpr timespec kPause{0, 1000000};
  struct stat info {};
  if (fstat(file, &info) != 0) return Status::error(std::strerror(errno));
  const long long first = in_ns(info.st_ctim);
  for (int i = 0; i < kTries; ++i) {
    if (i > 0) nanosleep(&kPause, nullptr);
    if (futimens(file, nullptr) != 0 || fstat(file, &info) != 0)
      return Status::error(std::strerror(errno));
    *ns = in_ns(info.st_ctim);
    if (*ns > first) break;
  }
  return Status::ok();
}

long long file_changed_ns(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0 ? in_ns(info.st_ctim) : 0;
}

long long file_made_ns(const std::string& path) {
  struct statx info {};
  constexpr unsigned kTimes = STATX_CTIME | STATX_MTIME | STATX_BTIME;
  if (statx(AT_FDCWD, path.c_str(), 0, kTimes, &info) != 0) return 0;
  const long long changed = in_ns(info.stx_ctime);
  if ((info.stx_mask & STATX_BTIME) == 0) return changed;
  std::error_code error;
  const auto folder = std::filesystem::canonical(path, error).parent_path();
  struct stat around {};
  if (error || stat(folder.c_str(), &around) != 0) return changed;
  const long long entered = in_ns(around.st_mtim);
  return std::min(changed, std::max({in_ns(info.stx_mtime), in_ns(info.stx_btime), entered}));
}

Status digest_part(const std::string& path, long long from, long long to, std::string* hex) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return look_error(path, errno);
  const bool read = digest_of_part(file, from, to, hex);
  const int reason = errno;
  close(file);
  return read ? Status::ok() : look_error(path, reason);
}

Status stamp_and_digest(const std::string& path, FileStamp* stamp, std::string* hex) {
  hex->clear();
  // Only regular files are opened, not a socket for example.
  if (Status s = file_stamp(path, stamp); !s || !stamp->there()) return s;
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) {
    *stamp = {};
    return means_not_there(errno) ? Status::ok() : look_error(path, errno);
  }
  struct stat info {};
  bool read = fstat(file, &info) == 0;
  *stamp = read ? stamp_of(info) : FileStamp{};
  if (stamp->there()) read = digest_of_part(file, 0, stamp->size, hex);
  const int reason = errno;
  close(file);
  return read ? Status::ok() : look_error(path, reason);
}

}  // namespace tally
