#include "src/checkpoint/checksum.h"

#include <doctest/doctest.h>

#include <numeric>

#include "src/checkpoint/stored_files.h"
#include "tests/train/data/temp_dir.h"

using namespace tally::train;
namespace fs = std::filesystem;

namespace {

// Bytes without a pattern that a block would repeat.
std::string some_bytes(size_t count) {
  std::string bytes(count, '\0');
  uint64_t x = 88172645463325252ull;
  for (char& c : bytes) {
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    c = static_cast<char>(x);
  }
  return bytes;
}

}  // namespace

TEST_CASE("checksums are XXH3's") {
  // XXH3_64bits of nothing: xxHash's own test vector.
  CHECK(checksum_of("", 0) == 0x2D06800538D394C2ull);
  CHECK(checksum_text(0x2D06800538D394C2ull) == "2d06800538d394c2");
  uint64_t back = 0;
  CHECK(parse_checksum("2d06800538d394c2", &back));
  CHECK(back == 0x2D06800538D394C2ull);
  for (const char* bad :
       {"", "2d06800538d394c", "2d06800538d394c20", "2d06800538d394cg", "-d06800538d394c2",
        "2D06800538D394C2", "2d06800538D394c2", "+d06800538d394c2", " d06800538d394c2"})
    CHECK_FALSE(parse_checksum(bad, &back));
}

TEST_CASE("blocks: the same whether written in pieces, at once or read back in shares") {
  const size_t block = checksum_block;
  for (const size_t size : {size_t{0}, size_t{1}, block - 1, block, block + 1, 2 * block + 12345}) {
    CAPTURE(size);
    const TempDir dir;
    const std::string bytes = some_bytes(size);
    dir.write("f", bytes);
    const FileChecksum whole = file_checksum(bytes.data(), size);
    CHECK(whole.bytes == size);
    CHECK(whole.blocks.size() == (size + block - 1) / block);
    ChecksumStream stream;
    for (size_t at = 0; at < size;) {
      const size_t piece = std::min(size - at, size_t{1} + at / 3 + 4097);
      stream.update(bytes.data() + at, piece);
      at += piece;
    }
    CHECK(stream.finish().blocks == whole.blocks);
    std::vector<uint64_t> shared(whole.blocks.size());
    for (size_t share = 0; share < 2; ++share) {
      const auto sums = read_block_checksums(dir / "f", size, share, 2);
      for (size_t i = 0; i < sums.size(); ++i) shared[share + 2 * i] = sums[i];
    }
    CHECK(shared == whole.blocks);
  }
}

TEST_CASE("the blocks that are read are checked, and the first damaged one is named") {
  const size_t size = 2 * checksum_block + 1000;
  std::string bytes = some_bytes(size);
  const FileChecksum sum = file_checksum(bytes.data(), size);
  const std::string path = "dir/file";
  const auto fault = [&](const std::vector<ByteRange>& ranges) {
    return error_of([&] { check_blocks({path, bytes.data(), bytes.size()}, sum, ranges); });
  };
  CHECK(fault({{0, size}}).empty());
  bytes[checksum_block] = static_cast<char>(bytes[checksum_block] ^ 1);
  bytes[size - 1] = static_cast<char>(bytes[size - 1] ^ 1);
  CHECK(
      fault({{0, size}}).find("'dir/file' is damaged: bytes 16777216 to 33554431 are not those") ==
      0);
  CHECK(fault({{0, checksum_block}}).empty());
  CHECK(fault({{checksum_block - 1, checksum_block + 1}}).find("bytes 16777216") !=
        std::string::npos);
  CHECK(fault({{size - 1, size}}).find("bytes 33554432 to 33555431") != std::string::npos);
  CHECK(fault({}).empty());
  bytes.resize(size - 1);
  CHECK(fault({}).find("it has 33555431 bytes, and 33555432 were saved") != std::string::npos);
}

TEST_CASE("a manifest of others is none of ours") {
  const TempDir dir;
  dir.write("model.safetensors", "x");
  dir.write("manifest.json", "{\"name\": \"an application\"}");
  CHECK(stored_files(dir / "").empty());
  CHECK_NOTHROW(check_small_files(dir / ""));
  dir.write("state.json", "{}");
  CHECK(error_of([&] { check_small_files(dir / ""); }).find("manifest.json' is damaged") !=
        std::string::npos);
}
