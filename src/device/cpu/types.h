// Storage and accumulation types of the CPU back end, and loops over rows shared among threads.
#pragma once

#include <ATen/Parallel.h>
#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include <cstdint>
#include <stdexcept>
#include <string>

#include "src/device/cpu/vector_math.h"
#include "src/device/philox.h"
#include "src/device/tensor.h"

namespace tally::train::cpu {

// The type that a storage type is computed in, and that gradients of its parameters are stored in:
// float64 for float64, float32 for everything else.
template <typename T>
struct Accumulate {
  using type = float;
};
template <>
struct Accumulate<double> {
  using type = double;
};
template <typename T>
using accumulate_t = typename Accumulate<T>::type;

// Calls f.template operator()<T>() with the C++ type of `dtype`.
template <typename F>
void with_type(DType dtype, const char* op, F&& f) {
  switch (dtype) {
    case DType::f64:
      return f.template operator()<double>();
    case DType::f32:
      return f.template operator()<float>();
    case DType::bf16:
      return f.template operator()<c10::BFloat16>();
    case DType::f16:
      return f.template operator()<c10::Half>();
    default:
      throw std::invalid_argument(std::string(op) + ": " + dtype_name(dtype) +
                                  " is not a type of floating-point numbers");
  }
}

inline bool is_narrow(DType t) {
  return t == DType::bf16 || t == DType::f16;
}

// Rows of a tensor seen as a matrix with the last dimension as columns.
template <typename Self, typename Data>
int64_t columns_of(const View<Self, Data>& t) {
  return t.rank ? t.dim(-1) : 1;
}
template <typename Self, typename Data>
int64_t rows_of(const View<Self, Data>& t) {
  const int64_t columns = columns_of(t);
  return columns ? t.numel() / columns : 0;
}

// The multipliers (0 or dropout_scale(p)) of dropout for elements [first, first + count).
template <typename A>
void draw_mask(double p, uint64_t seed, uint64_t first, int64_t count, A* out) {
  const uint32_t threshold = dropout_threshold(p);
  const A scale = static_cast<A>(dropout_scale(p));
  for (int64_t i = 0; i < count;) {
    const uint64_t element = first + static_cast<uint64_t>(i);
    const Philox4 draw = dropout_draw(seed, element >> 3);
    for (uint64_t at = element & 7; at < 8 && i < count; ++at, ++i) {
      const bool keep = dropout_keeps_half(draw.word[at / 2], static_cast<int>(at % 2), threshold);
      out[i] = keep ? scale : A(0);
    }
  }
}

// sums[j] += sum over rows of x[i * stride + j], row after row in double: the result does not
// depend on the number of threads, which share the columns.
template <typename T, typename G>
TALLY_CLONES void add_block_sums(const T* x, int64_t rows, int64_t stride, int64_t n, G* sums) {
  constexpr int64_t block = 64;
  double sum[block] = {};
  for (int64_t i = 0; i < rows; ++i, x += stride)
    for (int64_t j = 0; j < n; ++j) sum[j] += static_cast<double>(x[j]);
  for (int64_t j = 0; j < n; ++j) sums[j] += static_cast<G>(sum[j]);
}
template <typename T, typename G>
void add_column_sums(const T* x, int64_t rows, int64_t stride, int64_t columns, G* sums) {
  constexpr int64_t block = 64;
  at::parallel_for(0, (columns + block - 1) / block, 1, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      const int64_t first = b * block;
      add_block_sums(x + first, rows, stride, std::min(block, columns - first), sums + first);
    }
  });
}

}  // namespace tally::train::cpu
