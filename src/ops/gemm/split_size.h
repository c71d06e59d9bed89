// The memory of operands that are split for tf32x3 (split.cu), in f32 elements. Seen by the
// counting device, too.
#pragma once

#include <cstdint>

namespace tally::train {

struct SplitSize {
  int64_t second;  // beginning of b's parts: a multiple of 256 bytes
  int64_t all;
};

// The size for a[rows, inner] and b[inner, cols], `batch` of each: two parts of every element.
constexpr SplitSize split_size(int64_t batch, int64_t rows, int64_t cols, int64_t inner) {
  const int64_t second = (2 * batch * rows * inner + 63) / 64 * 64;
  return {second, second + 2 * batch * inner * cols};
}

}  // namespace tally::train
