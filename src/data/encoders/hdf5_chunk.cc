#include "src/data/encoders/hdf5_chunk.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <limits>

namespace tally::train {
namespace {

std::string inflate_to(size_t size, std::vector<unsigned char>* data) {
  std::vector<unsigned char> out(size);
  uLongf got = size;
  const int code = uncompress(out.data(), &got, data->data(), data->size());
  if (code != Z_OK || got != size)
    return fmt::format("gzip data do not unpack to {} bytes ({})", size,
                       code == Z_OK ? fmt::format("{} came out", got) : zError(code));
  *data = std::move(out);
  return "";
}

// Shuffle stores first all first bytes of the numbers, then all second ones.
void unshuffle(size_t number_bytes, std::vector<unsigned char>* data) {
  std::vector<unsigned char> out(data->size());
  const size_t numbers = data->size() / number_bytes;
  for (size_t byte = 0; byte < number_bytes; ++byte) {
    for (size_t i = 0; i < numbers; ++i) out[i * number_bytes + byte] = (*data)[byte * numbers + i];
  }
  *data = std::move(out);
}

}  // namespace

std::string unpack_hdf5_chunk(const std::vector<Hdf5Filter>& filters, uint32_t skipped,
                              size_t number_bytes, size_t size, std::vector<unsigned char>* data) {
  for (size_t i = filters.size(); i-- > 0;) {
    if (i < 32 && (skipped >> i & 1) != 0) continue;
    if (filters[i].deflate) {
      if (std::string why = inflate_to(size, data); !why.empty()) return why;
    } else if (data->size() == size) {
      unshuffle(number_bytes, data);
    }
  }
  if (data->size() == size) return "";
  return fmt::format("{} bytes are stored where {} belong", data->size(), size);
}

int32_t hdf5_integer(const unsigned char* from, const Hdf5Integers& type) {
  uint64_t bits = 0;
  for (size_t i = 0; i < type.bytes; ++i) {
    const size_t at = type.little_endian ? type.bytes - 1 - i : i;
    bits = bits << 8 | from[at];
  }
  const auto least = std::numeric_limits<int32_t>::min(),
             most = std::numeric_limits<int32_t>::max();
  if (!type.is_signed)
    return bits > static_cast<uint64_t>(most) ? most : static_cast<int32_t>(bits);
  const size_t unused = 64 - 8 * std::clamp<size_t>(type.bytes, 1, 8);
  const auto value = static_cast<int64_t>(bits << unused) >> unused;
  return static_cast<int32_t>(std::clamp<int64_t>(value, least, most));
}

}  // namespace tally::train
