#include "src/convert/source_weights.h"

#include <cstring>

namespace tally::train {
namespace {

// One element a time: only what is transposed or sliced comes here.
template <typename T>
void copy_strided(const SourceTensor& tensor, T* out) {
  const T* from = reinterpret_cast<const T*>(tensor.data);
  const size_t rank = tensor.shape.size();
  std::vector<int64_t> index(rank, 0);
  const int64_t count = tensor.elements();
  int64_t at = 0;
  for (int64_t i = 0; i < count; ++i) {
    std::memcpy(out + i, from + at, sizeof(T));  // the file may have it unaligned
    for (size_t d = rank; d-- > 0;) {
      at += tensor.strides[d];
      if (++index[d] < tensor.shape[d]) break;
      at -= tensor.shape[d] * tensor.strides[d];
      index[d] = 0;
    }
  }
}

}  // namespace

int64_t SourceTensor::elements() const {
  int64_t count = 1;
  for (const int64_t n : shape) count *= n;
  return count;
}

bool SourceTensor::contiguous() const {
  int64_t expected = 1;
  for (size_t d = shape.size(); d-- > 0;) {
    if (shape[d] != 1 && strides[d] != expected) return false;
    expected *= shape[d];
  }
  return true;
}

void SourceTensor::copy_to(char* out) const {
  const auto bytes = static_cast<size_t>(elements()) * size_of(dtype);
  if (bytes == 0) return;
  if (contiguous()) {
    std::memcpy(out, data, bytes);
    return;
  }
  switch (size_of(dtype)) {
    case 1:
      return copy_strided(*this, reinterpret_cast<uint8_t*>(out));
    case 2:
      return copy_strided(*this, reinterpret_cast<uint16_t*>(out));
    case 4:
      return copy_strided(*this, reinterpret_cast<uint32_t*>(out));
    default:
      return copy_strided(*this, reinterpret_cast<uint64_t*>(out));
  }
}

const MappedFile& SourceWeights::map(const std::string& path) {
  files.push_back(std::make_unique<MappedFile>(path));
  files.back()->watch();
  return *files.back();
}

}  // namespace tally::train
