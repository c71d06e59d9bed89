// Dropout's mask for a few elements in a row, drawn again in the backward pass rather than stored.
#pragma once

#include "src/ops/cuda/common.cuh"
#include "src/ops/philox.h"
#include "src/ops/step_state.h"

namespace tally::train::cuda {

struct Dropout {
  DropoutSeed source;
  uint64_t seed = 0;  // once resolved
  uint32_t threshold;
  double scale;  // 1 / (1 - p); 1 where there is no dropout
  bool active;

  Dropout(double p, DropoutSeed seed_)
      : source(seed_),
        threshold(dropout_threshold(p)),
        scale(p < 1 ? 1 / (1 - p) : 0),
        active(p > 0) {}

  // At the start of a kernel.
  __device__ inline void resolve() {
    if (active) seed = source.get();
  }

  // Multiplies elements i .. i + N - 1 of the tensor by their factors.
  template <int N, typename A>
  __device__ inline void apply(uint64_t i, A (&x)[N]) const {
    if constexpr (N % 4 == 0) {
#pragma unroll
      for (int part = 0; part < N; part += 4) {
        const Philox4 random = philox(seed, (i + part) >> 2);
#pragma unroll
        for (int k = 0; k < 4; ++k)
          x[part + k] = random.word[k] >= threshold ? x[part + k] * A(scale) : A(0);
      }
    } else {
#pragma unroll
      for (int k = 0; k < N; ++k)
        x[k] = dropout_keeps(seed, i + k, threshold) ? x[k] * A(scale) : A(0);
    }
  }
};

}  // namespace tally::train::cuda
