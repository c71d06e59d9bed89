// LevelDB's table files (doc/table_format.md of LevelDB): sorted keys and values in blocks. They
// are the index of TensorFlow's checkpoints, which have no compression.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace tally::train {

// CRC-32C (Castagnoli) as LevelDB and TensorFlow store it: rotated by 15 bits, plus a constant.
uint32_t masked_crc32c(std::string_view bytes);

// Calls `entry` with each key and value of a table, in order. Values are views of `table`. Throws
// DamagedData where the table is damaged or compressed.
void read_sorted_table(
    std::string_view table,
    const std::function<void(const std::string& key, std::string_view value)>& entry);

}  // namespace tally::train
