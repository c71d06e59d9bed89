#include "src/convert/sorted_table.h"

#include <array>

#include "src/convert/byte_reader.h"

namespace tally::train {
namespace {

constexpr uint64_t kMagic = 0xdb4775248b80fb57;
constexpr size_t kFooterBytes = 48, kTrailerBytes = 5;
constexpr size_t kLongestKey = size_t{1} << 16;

using OnEntry = std::function<void(const std::string& key, std::string_view value)>;

std::array<uint32_t, 256> crc_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82f63b78U : 0U);
    table[i] = crc;
  }
  return table;
}

// The block that a handle (two varints: offset and bytes) names, without its trailer.
std::string_view block_at(std::string_view table, ByteReader* handle) {
  const uint64_t offset = handle->take_varint();
  const uint64_t bytes = handle->take_varint();
  if (offset > table.size() || bytes > table.size() - offset ||
      table.size() - offset - bytes < kTrailerBytes)
    throw DamagedData("a block of its table lies beyond its end");
  ByteReader in(table, static_cast<size_t>(offset));
  const std::string_view block = in.take(bytes);
  const auto compression = in.take<uint8_t>();
  const auto crc = in.take<uint32_t>();
  if (masked_crc32c(table.substr(static_cast<size_t>(offset), static_cast<size_t>(bytes) + 1)) !=
      crc)
    throw DamagedData("a block of its table does not have its CRC-32C");
  if (compression != 0)
    throw DamagedData("its table is compressed, and TensorFlow writes it without compression");
  return block;
}

// A key is what it shares with the key before it, and the rest.
void read_block(std::string_view block, const OnEntry& entry) {
  if (block.size() < sizeof(uint32_t)) throw DamagedData("a block of its table is too short");
  const auto restarts = ByteReader(block, block.size() - sizeof(uint32_t)).take<uint32_t>();
  const uint64_t tail = (uint64_t{restarts} + 1) * sizeof(uint32_t);
  if (tail > block.size()) throw DamagedData("a block of its table has too many restart points");
  ByteReader in(block.substr(0, block.size() - static_cast<size_t>(tail)));
  std::string key;
  while (!in.done()) {
    const uint64_t shared = in.take_varint();
    const uint64_t added = in.take_varint();
    const uint64_t value_bytes = in.take_varint();
    if (shared > key.size() || added > kLongestKey || shared + added > kLongestKey)
      throw DamagedData("a key of its table is damaged");
    key.resize(static_cast<size_t>(shared));
    key += in.take(added);
    entry(key, in.take(value_bytes));
  }
}

}  // namespace

uint32_t masked_crc32c(std::string_view bytes) {
  static const std::array<uint32_t, 256> table = crc_table();
  uint32_t crc = 0xffffffff;
  for (const char c : bytes) crc = (crc >> 8) ^ table[(crc ^ static_cast<uint8_t>(c)) & 0xff];
  crc = ~crc;
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8U;
}

void read_sorted_table(std::string_view table, const OnEntry& entry) {
  if (table.size() < kFooterBytes) throw DamagedData("it is cut short");
  ByteReader footer(table.substr(table.size() - kFooterBytes));
  if (ByteReader(table, table.size() - sizeof kMagic).take<uint64_t>() != kMagic)
    throw DamagedData("it does not end as a table does: it is cut short or is another file");
  footer.take_varint();  // the metaindex, which TensorFlow leaves empty
  footer.take_varint();
  uint64_t total = 0;
  read_block(block_at(table, &footer), [&](const std::string&, std::string_view value) {
    ByteReader handle(value);
    const std::string_view block = block_at(table, &handle);
    total += block.size() + kTrailerBytes;
    if (total > table.size()) throw DamagedData("its table names a block more than once");
    read_block(block, entry);
  });
}

}  // namespace tally::train
