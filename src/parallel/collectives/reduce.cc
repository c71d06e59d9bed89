#include <algorithm>
#include <array>

#include "src/device/convert.h"
#include "src/parallel/collectives/module.h"

namespace tally::train {
namespace {

template <typename T>
void reduce(Reduce op, const T* from, T* to, int64_t count) {
  if (op == Reduce::sum) {
    for (int64_t i = 0; i < count; ++i) to[i] += from[i];
  } else {
    // A NaN is preserved, so that every rank sees it.
    for (int64_t i = 0; i < count; ++i)
      to[i] = to[i] >= from[i] || to[i] != to[i] ? to[i] : from[i];
  }
}

// bf16 and f16 through float32, a piece at a time.
void reduce_narrow(DType type, Reduce op, const uint16_t* from, uint16_t* to, int64_t count) {
  constexpr int64_t piece = 1024;
  std::array<float, piece> a{}, b{};
  for (int64_t first = 0; first < count; first += piece) {
    const int64_t n = std::min(piece, count - first);
    // Tensor has no view of constant memory; nothing is written through this one.
    convert_elements(Tensor(const_cast<uint16_t*>(from + first), type, {n}),
                     Tensor(a.data(), DType::f32, {n}));
    convert_elements(Tensor(to + first, type, {n}), Tensor(b.data(), DType::f32, {n}));
    reduce(op, a.data(), b.data(), n);
    convert_elements(Tensor(b.data(), DType::f32, {n}), Tensor(to + first, type, {n}));
  }
}

template <typename T>
void reduce_as(Reduce op, const void* from, void* to, int64_t count) {
  reduce(op, static_cast<const T*>(from), static_cast<T*>(to), count);
}

}  // namespace

void reduce_elements(DType type, Reduce op, const void* from, void* to, int64_t count) {
  switch (type) {
    case DType::f64:
      return reduce_as<double>(op, from, to, count);
    case DType::f32:
      return reduce_as<float>(op, from, to, count);
    case DType::i64:
      return reduce_as<int64_t>(op, from, to, count);
    case DType::i32:
      return reduce_as<int32_t>(op, from, to, count);
    case DType::bf16:
    case DType::f16:
      return reduce_narrow(type, op, static_cast<const uint16_t*>(from), static_cast<uint16_t*>(to),
                           count);
    case DType::u16:
    case DType::u8:
    case DType::e4m3:
    case DType::e5m2:
      throw CommunicationError("numbers of this type cannot be added");
  }
}

}  // namespace tally::train
