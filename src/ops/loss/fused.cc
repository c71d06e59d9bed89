// Fused linear cross-entropy (loss.h), by the kernels of fused_gemm.h.
#include <fmt/format.h>

#include <algorithm>

#include "src/device/cuda/check.h"
#include "src/ops/gemm/problem.h"
#include "src/ops/loss/fused_gemm.h"
#include "src/ops/loss/fused_passes.h"
#include "src/ops/rows/rows.h"

namespace tally::train::cuda {
namespace {

CrossEntropyGemm problem(const In& x, const In& w, const Out& e) {
  CrossEntropyGemm p;
  p.inner = x.dim(-1);
  p.tokens = x.numel() / p.inner;
  p.columns = w.dim(0);
  p.x = x.data;
  p.weight = w.data;
  p.out = e.data;
  return p;
}

// The stream's workspace holds a shift per token, the parts, and the list of rows to redo.
size_t workspace_of(const CrossEntropyGemm& p, const CrossEntropyKernel& kernel) {
  const int64_t parts = (p.columns + kernel.tile_columns - 1) / kernel.tile_columns;
  return static_cast<size_t>((parts + 2) * p.tokens + 1) * sizeof(float);
}

bool serves(const CudaStream& s, const CrossEntropyGemm& p, const CrossEntropyKernel& kernel) {
  const auto bits = reinterpret_cast<uintptr_t>(p.x) | reinterpret_cast<uintptr_t>(p.weight) |
                    reinterpret_cast<uintptr_t>(p.out);
  return bits % 16 == 0 && kernel.supported(p) && workspace_of(p, kernel) <= s.workspace_bytes();
}

// Every kernel with two orders of tiles: one tile of columns along all tokens, or eight, which read
// the tokens once for all of them.
struct Variant {
  const CrossEntropyKernel* kernel;
  int swizzle;
};
std::vector<Variant> variants_of(const CudaStream& s, DType type, const CrossEntropyGemm& p) {
  std::vector<Variant> variants;
  if (type != DType::bf16 || s.capability() != 90) return variants;
  for (const CrossEntropyKernel& kernel : cross_entropy_kernels()) {
    if (!serves(s, p, kernel)) continue;
    for (const int swizzle : {8, 1}) variants.push_back({&kernel, swizzle});
  }
  return variants;
}

// Everything but scaling x. `e` and the other results can be overwritten again and again.
void run_fused(const CudaCompute& c, const std::vector<Variant>& variants, CrossEntropyGemm p,
               const HeadRows16& h) {
  CudaStream& s = c.stream;
  auto* shifts = static_cast<float*>(s.workspace());
  const RowList redo{reinterpret_cast<int32_t*>(shifts + p.tokens),
                     reinterpret_cast<int32_t*>(shifts + p.tokens) + 1};
  p.vocabulary = h.head.labels.vocabulary;
  p.shifts = shifts;
  p.labels = h.head.labels.labels.as<int32_t>();
  p.parts = shifts + 2 * p.tokens + 1;
  label_shifts(s, h, shifts, redo);
  std::vector<std::function<void()>> runs;
  for (const Variant& v : variants) {
    runs.emplace_back([c, p, v]() mutable {
      p.swizzle = v.swizzle;
      CUDA_CHECK(v.kernel->launch(p, c.sms_for_gemms(), c.stream.stream()));
    });
  }
  const std::string key =
      shape_key("exponential", c, gemm_problem(h.head.x, h.head.w, true, h.results.e));
  const auto best = static_cast<size_t>(fastest(c, key + std::to_string(runs.size()), runs));
  runs[best]();
  const int64_t tile = variants[best].kernel->tile_columns;
  row_scales(s, h, p.parts, (p.columns + tile - 1) / tile, shifts, redo);
  redo_rows(s, h, redo);
}

// Does the work of scaling x's rows, in memory that nothing reads.
void scale_elsewhere(CudaStream& s, const HeadRows16& h) {
  const Out &scales = h.results.scales, &x = h.head.x;
  const int64_t rows = scales.numel(), columns = x.dim(-1);
  const int64_t room = static_cast<int64_t>(s.second_workspace_bytes()) /
                       (columns * static_cast<int64_t>(size_of(x.dtype)));
  for (int64_t first = 0; room > 0 && first < rows; first += room) {
    const int64_t count = std::min(room, rows - first);
    const Tensor scratch(s.second_workspace(), x.dtype, {count, columns});
    scale_rows(s, scales.rows(first, count), Out(scratch));
  }
}

bool pays(const Compute& compute, const HeadOperands& head, const HeadResults& results) {
  const CudaCompute c = cuda_compute(compute);
  CudaStream& s = c.stream;
  const CrossEntropyGemm p = problem(head.x, head.w, results.e);
  const std::vector<Variant> variants = variants_of(s, head.x.dtype, p);
  if (variants.empty()) return false;
  const HeadRows16 h{head, {1}, results};
  const auto joint = [&] {
    run_fused(c, variants, p, h);
    scale_elsewhere(s, h);  // for x
    scale_elsewhere(s, h);  // for its gradient
  };
  const GemmProblem logits = gemm_problem(head.x, head.w, true, results.e);
  const auto apart = [&] {
    gemm(c, logits);
    cross_entropy(s, results.e, head.labels, LossGradient{1}, results.losses);
  };
  return fastest(c, shape_key("head", c, logits), {joint, apart}) == 0;
}

void fused(const Compute& compute, const HeadOperands& head, LossGradient gradient,
           const HeadResults& results) {
  const CudaCompute c = cuda_compute(compute);
  const CrossEntropyGemm p = problem(head.x, head.w, results.e);
  const std::vector<Variant> variants = variants_of(c.stream, head.x.dtype, p);
  if (variants.empty()) {
    throw DeviceError(fmt::format(
        "linear_cross_entropy: no kernel for {} tokens, {} columns and {} inner in {} on this GPU",
        p.tokens, p.columns, p.inner, dtype_name(head.x.dtype)));
  }
  run_fused(c, variants, p, {head, gradient, results});
  scale_rows(c.stream, results.scales, head.x);
}

const OnCuda versions[] = {{linear_cross_entropy, fused}, {linear_cross_entropy_pays, pays}};

}  // namespace

KernelList<CrossEntropyKernel>& cross_entropy_kernels() {
  static KernelList<CrossEntropyKernel> list;
  return list;
}

}  // namespace tally::train::cuda
