// Numbers in host memory between floating-point types, and the masks of dropout drawn on the host.
#pragma once

#include <cstdint>

#include "src/device/tensor.h"

namespace tally::train {

// to[i] = from[i], rounded to nearest even. Both in host memory, of equal numel; f64, f32, bf16 or
// f16.
void convert_elements(const Tensor& from, const Tensor& to);

// out[i] = 0 or dropout_scale(p), about 1 / (1 - p): what dropout with probability `p` and `seed`
// multiplies element i by, on every device (philox.h). `out`: host memory, f32 or f64.
void dropout_mask(double p, uint64_t seed, const Tensor& out);

}  // namespace tally::train
