// A cursor over the bytes of a file. Every read is checked against their end.
#pragma once

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>

namespace tally::train {

// Says what is wrong with the bytes of a file, without the file's name: its reader adds that.
struct DamagedData : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes, size_t position = 0)
      : bytes_(bytes), position_(position) {}

  size_t position() const { return position_; }
  size_t left() const { return position_ < bytes_.size() ? bytes_.size() - position_ : 0; }
  bool done() const { return left() == 0; }

  // The next `count` bytes. Throws DamagedData where there are fewer.
  std::string_view take(uint64_t count) {
    if (count > left()) throw DamagedData("it is cut short, or a size in it is wrong");
    const std::string_view taken = bytes_.substr(position_, static_cast<size_t>(count));
    position_ += static_cast<size_t>(count);
    return taken;
  }
  // A little-endian integer.
  template <typename T>
  T take() {
    T value;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  // Reads up to a line feed, which is left out.
  std::string_view take_line() {
    const size_t end = bytes_.find('\n', position_);
    if (end == std::string_view::npos) throw DamagedData("it ends within a line");
    const std::string_view line = take(end - position_);
    take(1);
    return line;
  }
  // A varint of protocol buffers: seven bits a byte, least significant first.
  uint64_t take_varint() {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const auto byte = take<uint8_t>();
      value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    throw DamagedData("a number in it has more than 64 bits");
  }

 private:
  std::string_view bytes_;
  size_t position_;
};

}  // namespace tally::train
