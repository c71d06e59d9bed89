// Numbers in host memory between floating-point types, and the masks of dropout drawn on the host.
#pragma once

#include <cstdint>
#include <optional>

#include "src/device/tensor.h"

namespace tally::train {

// to[i] = from[i], rounded to nearest even. Both in host memory, of equal numel; f64, f32, bf16 or
// f16.
void convert_elements(const Tensor& from, const Tensor& to);

// The first of `count` numbers in host memory, which need not be aligned, that is NaN or infinite.
// f64, f32, bf16 or f16.
std::optional<int64_t> first_not_finite(const char* data, DType dtype, int64_t count);

// out[i] = 0 or dropout_scale(p), about 1 / (1 - p): what dropout with probability `p` and `seed`
// multiplies element i by, on every device (philox.h). `out`: host memory, f32 or f64.
void dropout_mask(double p, uint64_t seed, const Tensor& out);

}  // namespace tally::train
