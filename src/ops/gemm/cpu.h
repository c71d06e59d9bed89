// GEMMs on the CPU, by ATen. 16-bit types are computed in float32 and rounded at the end.
#pragma once

#include "src/device/cpu/aten_views.h"

namespace tally::train::cpu {

// y = a b (+ bias) (+ residual), rounded to y's type at the end. a, b, bias: aten_operand().
void matmul(const at::Tensor& a, const at::Tensor& b, const at::Tensor& bias, const Out& y,
            const In& residual = {});

}  // namespace tally::train::cpu
