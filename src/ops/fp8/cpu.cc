// fp8.h on the CPU, by ATen: what a GPU's casts give, and its GEMMs in float32.
#include <ATen/ops/abs.h>
#include <ATen/ops/amax.h>
#include <ATen/ops/constant_pad_nd.h>
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

// The scales of an operand [rows, inner], as a matrix: a row of it for each row or row of blocks.
at::Tensor scale_matrix(const In& scales, Fp8Scaling scaling, int64_t rows, int64_t inner) {
  const int64_t blocks = fp8_blocks(inner);
  switch (scaling) {
    case Fp8Scaling::tensor:
      return aten_blob(scales, {1, 1});
    case Fp8Scaling::row:
      return aten_blob(scales, {rows, 1});
    case Fp8Scaling::vector128:
      return aten_blob(scales, {blocks, rows}).t();
    case Fp8Scaling::block128:
      return aten_blob(scales, {fp8_blocks(rows), fp8_block_stride(inner)}).narrow(1, 0, blocks);
  }
  return {};
}

// One for each number, or as many as can be broadcast.
at::Tensor scale_of_each(const In& scales, Fp8Scaling scaling, int64_t rows, int64_t inner) {
  at::Tensor all = scale_matrix(scales, scaling, rows, inner);
  if (scaling == Fp8Scaling::block128) all = all.repeat_interleave(fp8_block, 0).narrow(0, 0, rows);
  if (scaling == Fp8Scaling::vector128 || scaling == Fp8Scaling::block128)
    all = all.repeat_interleave(fp8_block, 1).narrow(1, 0, inner);
  return all;
}

// The largest magnitudes of x[rows, inner], laid out as its scale_matrix().
at::Tensor magnitudes(const at::Tensor& x, Fp8Scaling scaling) {
  const int64_t rows = x.size(0), inner = x.size(1), blocks = fp8_blocks(inner);
  if (scaling == Fp8Scaling::row) return x.abs().amax(1, true);
  const int64_t height = scaling == Fp8Scaling::block128 ? fp8_block : 1;
  const int64_t tall = (rows + height - 1) / height;
  return at::constant_pad_nd(x.abs(), {0, blocks * fp8_block - inner, 0, tall * height - rows})
      .view({tall, height, blocks, fp8_block})
      .amax({1, 3});
}

// An operand from x[rows, inner], with scales of its own.
void cast_scaled(const at::Tensor& x, Fp8Scaling scaling, const Tensor& out, const Tensor& scales) {
  if (!out.defined()) return;
  const int64_t rows = x.size(0), inner = x.size(1);
  at::Tensor multipliers = magnitudes(x, scaling).contiguous();
  auto* m = multipliers.data_ptr<float>();
  for (int64_t i = 0; i < multipliers.numel(); ++i)
    m[i] = fp8_power_of_two(m[i], largest_of(out.dtype));
  at::Tensor to = scale_matrix(scales, scaling, rows, inner);
  to.copy_(multipliers.reciprocal());
  const at::Tensor each = scale_of_each(scales, scaling, rows, inner).reciprocal();
  aten_matrix(out).copy_(x.mul(each).to(scalar_type(out.dtype)));
}

void copy(const at::Tensor& from, const Tensor& to) {
  if (to.defined()) aten_matrix(to).copy_(from);
}

// The magnitude that becomes the format's largest number.
float used_amax(const In& amaxes) {
  const float found = aten_view(amaxes).max().item<float>();
  return found < smallest_amax ? smallest_amax : found;  // a NaN stays one
}

void cast_tensor(const at::Tensor& x, const In& amaxes, const Fp8Copies& out) {
  const float largest = largest_of(out.format()), amax = used_amax(amaxes);
  *(out.rows.defined() ? out.row_scales : out.column_scales).as<float>() = amax / largest;
  const at::Tensor q = x.mul(largest / amax).to(scalar_type(out.format()));
  copy(q, out.rows);
  copy(q.t(), out.columns);
}

void cast(Stream&, In x, In amaxes, Fp8Copies out) {
  if (x.numel() == 0) return;
  const at::Tensor wide = aten_matrix(x).to(at::kFloat);
  if (out.scaling == Fp8Scaling::tensor) return cast_tensor(wide, amaxes, out);
  cast_scaled(wide, out.scaling, out.rows, out.row_scales);
  cast_scaled(wide.t(), out.scaling, out.columns, out.column_scales);
}

void complete(Stream&, In amaxes, Fp8Copies out) {
  *out.row_scales.as<float>() = used_amax(amaxes) / largest_of(out.format());
  copy(aten_matrix(out.rows).t(), out.columns);
}

// The numbers that an operand stands for.
at::Tensor widened(const Fp8Matrix& m, at::ScalarType type) {
  const In& q = m.data;
  const at::Tensor scales = scale_of_each(m.scales, m.scaling, q.dim(0), q.dim(1)).to(type);
  return aten_matrix(q).to(type).mul_(scales);
}

void gemm(const Compute&, Fp8Matrix a, Fp8Matrix b, Out out, Fp8Sum sum) {
  const at::ScalarType type = out.dtype == DType::f64 ? at::kDouble : at::kFloat;
  const at::Tensor bias = sum.bias.defined() ? aten_operand(sum.bias).view({-1}) : at::Tensor();
  matmul(widened(a, type), widened(b, type).t(), bias, out, sum.addend);
}

const OnCpu versions[] = {
    {fp8_amax, amax}, {fp8_cast, cast}, {fp8_complete, complete}, {fp8_gemm, gemm}};

}  // namespace
}  // namespace tally::train::cpu
