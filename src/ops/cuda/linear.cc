// Matrix products of the layers, but those with GELU (linear_gelu.cc). What is fused and what is a
// pass of its own is decided by timing.
#include "src/ops/cuda/check.h"
#include "src/ops/cuda/cuda_ops.h"
#include "src/ops/cuda/gemm_float64.h"
#include "src/ops/cuda/kernels.h"
#include "src/ops/cuda/linear_parts.h"

namespace tally::train::cuda {

void linear_forward(Stream& stream, const Tensor& x, const Tensor& w, const Tensor& b,
                    const Tensor& y, const Tensor& residual) {
  CudaStream& s = cuda_stream(stream);
  MatMul plain = product(x, w, true, y);
  if (residual.defined()) {
    plain.beta = 1;
    plain.addend = residual.data;
    if (residual.data != y.data && !matmul_supported(s, plain)) {
      s.copy(y.data, residual.data, y.bytes());
      plain.addend = y.data;
    }
  }
  if (!b.defined()) return matmul(s, plain);
  const MatMul fused = with_epilogue(plain, Epilogue::bias, b, nullptr);
  const auto two_passes = [&] {
    matmul(s, plain);
    add_bias(s, b, y);
  };
  if (!matmul_supported(s, fused)) return two_passes();
  // What is added in place would be added once a rehearsal.
  if (plain.addend == y.data && residual.defined()) return matmul(s, fused);
  std::vector<std::function<void()>> ways{[&] { matmul(s, fused); }, two_passes};
  const FusedProduct own = fused_product(plain, b, residual.data, y);
  const FusedKernels kernels = residual.defined() ? bias_residual_kernels() : bias_kernels();
  for (const FusedKernel* kernel : serving(s, s.own_bias_products, kernels, own, y.dtype)) {
    ways.emplace_back([&s, own, kernel] {
      CUDA_CHECK(kernel->launch(own, s.multiprocessors_for_products(), s.stream()));
    });
  }
  const std::string key = shape_key(residual.defined() ? "bias+" : "bias", s, plain);
  ways[static_cast<size_t>(fastest(s, key + std::to_string(ways.size()), ways))]();
}

bool float64_products_serve(Stream& stream) {
  const CudaStream& s = cuda_stream(stream);
  return s.float64_products && s.capability() == 90 && s.matmul_mode == MatmulMode::ieee &&
         float64_products_built();
}

void linear_backward_input(Stream& stream, const Tensor& dy, const Tensor& w, const Tensor& dx) {
  matmul(cuda_stream(stream), product(dy, w, false, dx));
}

void linear_backward_weight(Stream& stream, const Tensor& dy, const Tensor& x, const Tensor& dw,
                            const Tensor& db, bool accumulate) {
  CudaStream& s = cuda_stream(stream);
  MatMul p;
  p.rows = dy.dim(-1);
  p.cols = x.dim(-1);
  p.inner = p.cols ? x.numel() / p.cols : 0;
  p.a = {dy.data, dy.dtype, p.rows, 0, true};
  p.b = {x.data, x.dtype, p.cols, 0, false};
  p.out = dw.data;
  p.out_dtype = dw.dtype;
  p.out_leading = p.cols;
  p.beta = accumulate ? 1 : 0;
  if (p.inner > 0) {
    matmul(s, p);
  } else if (!accumulate) {
    s.fill_zero(dw.data, dw.bytes());
  }
  if (db.defined()) column_sums(s, dy, 0, db);
}

void linear_backward_bias(Stream& stream, const Tensor& dy, int64_t first, const Tensor& db) {
  column_sums(cuda_stream(stream), dy, first, db);
}

void linear_backward_bias_input(Stream& stream, const Tensor& sums, const Tensor& w,
                                const Tensor& db, const Tensor& dbx) {
  product_row(cuda_stream(stream), sums, w, db, dbx);
}

}  // namespace tally::train::cuda
