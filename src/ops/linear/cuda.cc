// The GEMMs of layers on a GPU, except those with an activation (cuda_activation.cc). Autotune
// decides what is fused.
#include "src/device/cuda/check.h"
#include "src/ops/column_sums.h"
#include "src/ops/gemm/problem.h"
#include "src/ops/linear/passes.h"

namespace tally::train::cuda {
namespace {

// Lets the GEMM add `addend` to `out`. It is copied there first where no kernel reads it elsewhere.
void add_to_gemm(const CudaCompute& c, const In& addend, const Out& out, GemmProblem* p) {
  p->beta = 1;
  p->addend = addend.data;
  if (addend.data == out.data || gemm_supported(c, *p)) return;
  c.stream.copy(out.data, addend.data, out.bytes());
  p->addend = out.data;
}

// The versions whose GEMM adds the bias.
void forward_with_bias(const CudaCompute& c, const GemmProblem& plain, const In& b, const Out& y,
                       const In& residual) {
  const GemmProblem fused = with_epilogue(plain, Epilogue::bias, b, nullptr);
  const auto two_passes = [&] {
    gemm(c, plain);
    add_bias(c.stream, b, y);
  };
  if (!gemm_supported(c, fused)) return two_passes();
  // Each timed run would add to the result in place, so this is not timed.
  if (plain.addend == y.data && residual.defined()) return gemm(c, fused);
  std::vector<std::function<void()>> variants{[&] { gemm(c, fused); }, two_passes};
  FusedGemm own = fused_gemm(plain, b, y);
  own.source = residual.data;
  const FusedWork work = residual.defined() ? FusedWork::bias_residual : FusedWork::bias;
  for (const FusedKernel* kernel :
       serving(c.stream, c.options.fusions.bias, fused_kernels(work, y.dtype), own)) {
    variants.emplace_back([c, own, kernel] {
      CUDA_CHECK(kernel->launch(own, c.sms_for_gemms(), c.stream.stream()));
    });
  }
  const std::string key = shape_key(residual.defined() ? "bias+" : "bias", c, plain);
  variants[static_cast<size_t>(fastest(c, key + std::to_string(variants.size()), variants))]();
}

void forward(const Compute& compute, In x, LinearWeights weights, Out y, In residual) {
  const CudaCompute c = cuda_compute(compute);
  GemmProblem plain = gemm_problem(x, weights.w, true, y);
  if (residual.defined()) add_to_gemm(c, residual, y, &plain);
  if (!weights.b.defined()) return gemm(c, plain);
  forward_with_bias(c, plain, weights.b, y, residual);
}

void backward_input(const Compute& compute, In dy, In w, Out dx, In addend) {
  const CudaCompute c = cuda_compute(compute);
  GemmProblem p = gemm_problem(dy, w, false, dx);
  if (addend.defined()) add_to_gemm(c, addend, dx, &p);
  gemm(c, p);
}

void backward_weight(const Compute& compute, In dy, In x, WeightGradients out) {
  const CudaCompute c = cuda_compute(compute);
  CudaStream& s = c.stream;
  const Out& dw = out.dw;
  GemmProblem p;
  p.rows = dy.dim(-1);
  p.cols = x.dim(-1);
  p.inner = p.cols ? x.numel() / p.cols : 0;
  p.a = {dy.data, dy.dtype, p.rows, 0, true};
  p.b = {x.data, x.dtype, p.cols, 0, false};
  p.out = dw.data;
  p.out_dtype = dw.dtype;
  p.out_leading = p.cols;
  p.beta = out.accumulate ? 1 : 0;
  if (p.inner > 0) {
    gemm(c, p);
  } else if (!out.accumulate) {
    s.fill_zero(dw.data, dw.bytes());
  }
  if (out.db.defined()) column_sums(s, dy, 0, out.db);
}

void backward_bias(Stream& s, In dy, int64_t first, Out db) {
  column_sums(cuda_stream(s), dy, first, db);
}

void backward_bias_input(Stream& s, In sums, In w, Out db, Out dbx) {
  row_times_matrix(cuda_stream(s), sums, w, db, dbx);
}

const OnCuda versions[] = {{linear_forward, forward},
                           {linear_backward_input, backward_input},
                           {linear_backward_weight, backward_weight},
                           {linear_backward_bias, backward_bias},
                           {linear_backward_bias_input, backward_bias_input}};

}  // namespace
}  // namespace tally::train::cuda
