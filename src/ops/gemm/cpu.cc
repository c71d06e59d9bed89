#include "src/ops/gemm/cpu.h"

#include <ATen/ops/addmm.h>
#include <ATen/ops/mm.h>

namespace tally::train::cpu {

void matmul(const at::Tensor& a, const at::Tensor& b, const at::Tensor& bias, const Out& y,
            const In& residual) {
  at::Tensor out = aten_matrix(y);
  if (residual.defined() && is_narrow(y.dtype)) {
    at::Tensor sum = at::addmm(aten_operand(residual), a, b);
    out.copy_(bias.defined() ? sum.add_(bias) : sum);
  } else if (residual.defined()) {
    at::addmm_out(out, aten_matrix(residual), a, b);
    if (bias.defined()) out.add_(bias);
  } else if (is_narrow(y.dtype)) {
    out.copy_(bias.defined() ? at::addmm(bias, a, b) : at::mm(a, b));
  } else if (bias.defined()) {
    at::addmm_out(out, bias, a, b);
  } else {
    at::mm_out(out, a, b);
  }
}

}  // namespace tally::train::cpu
