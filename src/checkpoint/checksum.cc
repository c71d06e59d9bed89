#include "src/checkpoint/checksum.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>
#include <xxhash.h>
// The same checksums by the widest vectors that the processor has: without it, by SSE2's.
#if defined(TALLY_XXHASH_DISPATCH) && __has_include(<xxh_x86dispatch.h>)
#include <xxh_x86dispatch.h>
#endif

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <limits>
#include <new>
#include <stdexcept>
#include <system_error>
#include <thread>

namespace tally::train {
namespace {

constexpr size_t kThreads = 4;

size_t count_of_blocks(uint64_t bytes) {
  return static_cast<size_t>((bytes + checksum_block - 1) / checksum_block);
}

std::runtime_error unreadable(const std::string& path, int error) {
  return std::runtime_error(fmt::format("'{}' cannot be read: {}", path, std::strerror(error)));
}

// The numbers of the blocks in which `ranges` lie, each once.
std::vector<size_t> blocks_of(const std::vector<ByteRange>& ranges) {
  std::vector<size_t> blocks;
  for (const ByteRange& range : ranges) {
    if (range.begin >= range.end) continue;
    const auto last = static_cast<size_t>((range.end - 1) / checksum_block);
    for (auto i = static_cast<size_t>(range.begin / checksum_block); i <= last; ++i)
      blocks.push_back(i);
  }
  std::sort(blocks.begin(), blocks.end());
  blocks.erase(std::unique(blocks.begin(), blocks.end()), blocks.end());
  return blocks;
}

// Calls work(i) for 0 ... count - 1, each once, in several threads where there are any.
template <typename Work>
void in_threads(size_t count, const Work& work) {
  std::atomic<size_t> next{0};
  const auto take = [&] {
    for (size_t i = next++; i < count; i = next++) work(i);
  };
  const size_t cores = std::max(1U, std::thread::hardware_concurrency());
  std::vector<std::thread> threads;
  try {
    while (threads.size() + 1 < std::min({kThreads, cores, count})) threads.emplace_back(take);
  } catch (const std::system_error&) {
    // A host without another thread to give: those that it has do the work.
  }
  take();
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

size_t FileChecksum::block_count() const {
  return count_of_blocks(bytes);
}

uint64_t checksum_of(const void* data, size_t bytes) {
  return XXH3_64bits(data, bytes);
}

struct ChecksumStream::State {
  XXH3_state_t* xxh = XXH3_createState();
  uint64_t in_block = 0;
  State() {
    if (xxh == nullptr) throw std::bad_alloc();
    XXH3_64bits_reset(xxh);
  }
  ~State() { XXH3_freeState(xxh); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
};

ChecksumStream::ChecksumStream() : state_(std::make_unique<State>()) {}
ChecksumStream::~ChecksumStream() = default;

void ChecksumStream::update(const void* data, size_t bytes) {
  const char* from = static_cast<const char*>(data);
  sum_.bytes += bytes;
  while (bytes > 0) {
    const auto part =
        static_cast<size_t>(std::min<uint64_t>(bytes, checksum_block - state_->in_block));
    XXH3_64bits_update(state_->xxh, from, part);
    state_->in_block += part;
    from += part;
    bytes -= part;
    if (state_->in_block < checksum_block) continue;
    sum_.blocks.push_back(XXH3_64bits_digest(state_->xxh));
    XXH3_64bits_reset(state_->xxh);
    state_->in_block = 0;
  }
}

FileChecksum ChecksumStream::finish() {
  if (state_->in_block > 0) sum_.blocks.push_back(XXH3_64bits_digest(state_->xxh));
  return std::move(sum_);
}

FileChecksum file_checksum(const void* data, size_t bytes) {
  ChecksumStream stream;
  stream.update(data, bytes);
  return stream.finish();
}

std::vector<uint64_t> read_block_checksums(const std::string& path, uint64_t bytes, size_t first,
                                           size_t step) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // a FIFO would wait
  if (fd < 0) throw unreadable(path, errno);
  struct Close {
    int fd;
    ~Close() { close(fd); }
  } const closes{fd};
  std::vector<char> block(static_cast<size_t>(std::min(bytes, checksum_block)));
  std::vector<uint64_t> sums;
  for (size_t i = first; i < count_of_blocks(bytes); i += step) {
    const uint64_t begin = i * checksum_block;
    const auto size = static_cast<size_t>(std::min(checksum_block, bytes - begin));
    for (size_t done = 0; done < size;) {
      const ssize_t got =
          pread(fd, block.data() + done, size - done, static_cast<off_t>(begin + done));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) throw unreadable(path, errno);
      if (got == 0)
        throw std::runtime_error(
            fmt::format("'{}' ends at byte {} of {}", path, begin + done, bytes));
      done += static_cast<size_t>(got);
    }
    sums.push_back(checksum_of(block.data(), size));
  }
  return sums;
}

void check_blocks(const MappedBytes& file, const FileChecksum& expected,
                  const std::vector<ByteRange>& ranges) {
  const auto damaged = [&](const std::string& why) {
    return std::runtime_error(
        fmt::format("'{}' is damaged: {}: load another checkpoint, or restore the file from a copy",
                    file.path, why));
  };
  if (file.bytes != expected.bytes)
    throw damaged(fmt::format("it has {} bytes, and {} were saved", file.bytes, expected.bytes));
  const std::vector<size_t> blocks = blocks_of(ranges);
  constexpr size_t kNone = std::numeric_limits<size_t>::max();
  std::atomic<size_t> first{kNone};
  in_threads(blocks.size(), [&](size_t i) {
    const uint64_t begin = blocks[i] * checksum_block;
    const auto size = static_cast<size_t>(std::min(checksum_block, expected.bytes - begin));
    if (checksum_of(file.data + begin, size) == expected.blocks[blocks[i]]) return;
    size_t known = first;
    while (blocks[i] < known && !first.compare_exchange_weak(known, blocks[i])) {
    }
  });
  if (first == kNone) return;
  const uint64_t begin = first * checksum_block;
  throw damaged(fmt::format("bytes {} to {} are not those that were saved (their checksum differs)",
                            begin, std::min(begin + checksum_block, expected.bytes) - 1));
}

std::string checksum_text(uint64_t checksum) {
  return fmt::format("{:016x}", checksum);
}

bool parse_checksum(const std::string& text, uint64_t* checksum) {
  const auto end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, *checksum, 16);
  return error == std::errc() && stop == end && checksum_text(*checksum) == text;
}

}  // namespace tally::train
