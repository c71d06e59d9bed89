// fp8.h's GEMMs on a GPU.
#pragma once

#include "src/ops/fp8/fp8.h"

namespace tally::train::cuda {

// Sizes of matrices are multiples of this: 16 bytes, as cuBLASLt asks of FP8.
inline constexpr int64_t fp8_multiple = 16;

void multiply_fp8(const Compute& compute, Fp8Matrix a, Fp8Matrix b, Out out, Fp8Sum sum);

}  // namespace tally::train::cuda
