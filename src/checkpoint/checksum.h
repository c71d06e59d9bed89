// Checksums of a checkpoint's files: XXH3-64 of every block of 16 MiB. A process checks the blocks
// that it reads and no others. Private to checkpoint/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace tally::train {

inline constexpr uint64_t checksum_block = uint64_t{16} << 20;  // bytes

struct FileChecksum {
  uint64_t bytes = 0;            // the file's size
  std::vector<uint64_t> blocks;  // the last block may be shorter; empty: not known

  bool known() const { return !blocks.empty() || bytes == 0; }
  size_t block_count() const;
};

// XXH3-64 of one text.
uint64_t checksum_of(const void* data, size_t bytes);

// The checksum of a file that is written from its beginning to its end.
class ChecksumStream {
 public:
  ChecksumStream();
  ~ChecksumStream();
  ChecksumStream(const ChecksumStream&) = delete;
  ChecksumStream& operator=(const ChecksumStream&) = delete;
  void update(const void* data, size_t bytes);
  FileChecksum finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
  FileChecksum sum_;
};
FileChecksum file_checksum(const void* data, size_t bytes);

// Blocks `first`, `first + step`, ... of a file of `bytes` bytes, read from the file. Throws
// std::runtime_error that names the file.
std::vector<uint64_t> read_block_checksums(const std::string& path, uint64_t bytes, size_t first,
                                           size_t step);

struct ByteRange {
  uint64_t begin = 0, end = 0;
};
// A file mapped into memory.
struct MappedBytes {
  const std::string& path;
  const char* data = nullptr;
  uint64_t bytes = 0;
};
// Checks the file's size and the blocks in which `ranges` lie, with up to four threads. Throws
// std::runtime_error with one sentence that names the file and the first damaged block.
void check_blocks(const MappedBytes& file, const FileChecksum& expected,
                  const std::vector<ByteRange>& ranges);

// Sixteen hexadecimal digits, and back; nothing for any other text.
std::string checksum_text(uint64_t checksum);
bool parse_checksum(const std::string& text, uint64_t* checksum);

}  // namespace tally::train
