// The dropout mask of a few consecutive elements. The backward pass draws it again instead of
// storing it.
#pragma once

#include "src/device/cuda/kernel.cuh"
#include "src/device/philox.h"
#include "src/device/step_state.h"

namespace tally::train::cuda {

struct Dropout {
  DropoutSeed source;
  uint64_t seed = 0;  // once resolved
  uint32_t threshold;
  double scale;  // factor of kept elements
  bool active;

  explicit Dropout(const DropoutMask& mask)
      : source(mask.seed),
        threshold(dropout_threshold(mask.probability)),
        scale(dropout_scale(mask.probability)),
        active(mask.probability > 0) {}

  // Called at the start of a kernel.
  __device__ inline void resolve() {
    if (active) seed = source.get();
  }

  // Multiplies elements i .. i + N - 1 of the tensor by their factors.
  template <int N, typename A>
  __device__ inline void apply(uint64_t i, A (&x)[N]) const {
    // i is a multiple of 4 or 8.
    if constexpr (N == 8 || N == 4) {
      const Philox4 random = dropout_draw(seed, i >> 3);
      const bool upper = N == 4 && (i & 4) != 0;
#pragma unroll
      for (int k = 0; k < N; ++k) {
        const uint32_t word = upper ? random.word[2 + k / 2 % 2] : random.word[k / 2];
        x[k] = dropout_keeps_half(word, k % 2, threshold) ? x[k] * A(scale) : A(0);
      }
    } else {
#pragma unroll
      for (int k = 0; k < N; ++k)
        x[k] = dropout_keeps(seed, i + k, threshold) ? x[k] * A(scale) : A(0);
    }
  }
};

}  // namespace tally::train::cuda
