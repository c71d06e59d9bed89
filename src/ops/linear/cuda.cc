// The GEMMs of layers on a GPU, except those with GELU (cuda_gelu.cc). Autotune decides what is
// fused.
#include "src/device/cuda/check.h"
#include "src/ops/linear/backends.h"
#include "src/ops/linear/cuda_parts.h"
#include "src/ops/linear/passes.h"

namespace tally::train::cuda {
namespace {

// Lets the GEMM add `addend` to `out`. It is copied there first where no kernel reads it elsewhere.
void add_to_gemm(const CudaCompute& c, const Tensor& addend, const Tensor& out, GemmProblem* p) {
  p->beta = 1;
  p->addend = addend.data;
  if (addend.data == out.data || gemm_supported(c, *p)) return;
  c.stream.copy(out.data, addend.data, out.bytes());
  p->addend = out.data;
}

}  // namespace

void linear_forward(const Compute& compute, const Tensor& x, const Tensor& w, const Tensor& b,
                    const Tensor& y, const Tensor& residual) {
  const CudaCompute c = cuda_compute(compute);
  CudaStream& s = c.stream;
  GemmProblem plain = gemm_problem(x, w, true, y);
  if (residual.defined()) add_to_gemm(c, residual, y, &plain);
  if (!b.defined()) return gemm(c, plain);
  const GemmProblem fused = with_epilogue(plain, Epilogue::bias, b, nullptr);
  const auto two_passes = [&] {
    gemm(c, plain);
    add_bias(s, b, y);
  };
  if (!gemm_supported(c, fused)) return two_passes();
  // In place, each timed run would add to the result, so this is not timed.
  if (plain.addend == y.data && residual.defined()) return gemm(c, fused);
  std::vector<std::function<void()>> variants{[&] { gemm(c, fused); }, two_passes};
  const FusedGemm own = fused_gemm(plain, b, residual.data, y);
  const FusedKernels kernels =
      residual.defined() ? bias_residual_kernels(y.dtype) : bias_kernels(y.dtype);
  for (const FusedKernel* kernel : serving(s, c.options.fused_bias, kernels, own)) {
    variants.emplace_back([c, own, kernel] {
      CUDA_CHECK(kernel->launch(own, c.sms_for_gemms(), c.stream.stream()));
    });
  }
  const std::string key = shape_key(residual.defined() ? "bias+" : "bias", c, plain);
  variants[static_cast<size_t>(fastest(c, key + std::to_string(variants.size()), variants))]();
}

bool float64_gemms_serve(const Compute& c) {
  return float64_gemms_serve(cuda_compute(c));
}

void linear_backward_input(const Compute& compute, const Tensor& dy, const Tensor& w,
                           const Tensor& dx, const Tensor& addend) {
  const CudaCompute c = cuda_compute(compute);
  GemmProblem p = gemm_problem(dy, w, false, dx);
  if (addend.defined()) add_to_gemm(c, addend, dx, &p);
  gemm(c, p);
}

void linear_backward_weight(const Compute& compute, const Tensor& dy, const Tensor& x,
                            const Tensor& dw, const Tensor& db, bool accumulate) {
  const CudaCompute c = cuda_compute(compute);
  CudaStream& s = c.stream;
  GemmProblem p;
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
    gemm(c, p);
  } else if (!accumulate) {
    s.fill_zero(dw.data, dw.bytes());
  }
  if (db.defined()) column_sums(s, dy, 0, db);
}

void linear_backward_bias(Stream& s, const Tensor& dy, int64_t first, const Tensor& db) {
  column_sums(cuda_stream(s), dy, first, db);
}

void linear_backward_bias_input(Stream& s, const Tensor& sums, const Tensor& w, const Tensor& db,
                                const Tensor& dbx) {
  row_times_matrix(cuda_stream(s), sums, w, db, dbx);
}

}  // namespace tally::train::cuda
