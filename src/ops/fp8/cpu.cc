// fp8.h on the CPU, by ATen: what a GPU's casts give, and its GEMMs in float32.
#include <ATen/ops/abs.h>
#include <ATen/ops/max.h>

#include "src/ops/fp8/fp8.h"
#include "src/ops/gemm/cpu.h"

namespace tally::train::cpu {
namespace {

void amax(Stream&, In x, Out amax) {
  at::Tensor result = aten_view(amax);
  if (x.numel() == 0) {
    result.zero_();
    return;
  }
  result.copy_(aten_matrix(x).abs().max().reshape({1}));
}

void copy(const at::Tensor& from, const Tensor& to) {
  if (to.defined()) aten_matrix(to).copy_(from);
}

void cast(Stream&, In x, In amaxes, Fp8Copies out) {
  const DType format = out.rows.defined() ? out.rows.dtype : out.columns.dtype;
  const float found = aten_view(amaxes).max().item<float>();
  const float amax = found < smallest_amax ? smallest_amax : found;  // a NaN stays one
  *out.scale.as<float>() = amax / largest_of(format);
  const at::Tensor q =
      aten_matrix(x).to(at::kFloat).mul(largest_of(format) / amax).to(scalar_type(format));
  copy(q, out.rows);
  copy(q.t(), out.columns);
}

at::Tensor widened(const In& data) {
  return aten_matrix(data).to(at::kFloat);
}

void gemm(const Compute&, Fp8Matrix a, Fp8Matrix b, Out out, Fp8Sum sum) {
  const float scale = *a.scale.as<float>() * *b.scale.as<float>();
  const at::ScalarType type = out.dtype == DType::f64 ? at::kDouble : at::kFloat;
  const at::Tensor left = widened(a.data).mul_(scale).to(type), right = widened(b.data).to(type);
  const at::Tensor bias = sum.bias.defined() ? aten_operand(sum.bias).view({-1}) : at::Tensor();
  matmul(left, right.t(), bias, out, sum.addend);
}

const OnCpu versions[] = {{fp8_amax, amax}, {fp8_cast, cast}, {fp8_gemm, gemm}};

}  // namespace
}  // namespace tally::train::cpu
