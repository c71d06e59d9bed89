// A head's product and its loss in one (loss.h), by the kernels of exponential_product.h.
#include <fmt/format.h>

#include <algorithm>

#include "src/ops/cuda/check.h"
#include "src/ops/cuda/cuda_ops.h"
#include "src/ops/cuda/exponential_product.h"
#include "src/ops/cuda/linear_parts.h"
#include "src/ops/cuda/loss_shares.h"

namespace tally::train::cuda {
namespace {

// The arguments of linear_cross_entropy().
struct Head {
  Tensor x, w, targets;
  int64_t vocabulary;
  double factor;
  const StepState* state;
  Tensor losses, shares, e;
};

ExponentialProduct problem(const Tensor& x, const Tensor& w, const Tensor& e) {
  ExponentialProduct p;
  p.inner = x.dim(-1);
  p.tokens = x.numel() / p.inner;
  p.columns = w.dim(0);
  p.x = x.data;
  p.weight = w.data;
  p.out = e.data;
  return p;
}

// The stream's workspace holds a number a token, and the parts.
size_t workspace_of(const ExponentialProduct& p, const ExponentialKernel& kernel) {
  const int64_t parts = (p.columns + kernel.tile_columns - 1) / kernel.tile_columns;
  return static_cast<size_t>((parts + 1) * p.tokens) * sizeof(float);
}

bool serves(const CudaStream& s, const ExponentialProduct& p, const ExponentialKernel& kernel) {
  const auto bits = reinterpret_cast<uintptr_t>(p.x) | reinterpret_cast<uintptr_t>(p.weight) |
                    reinterpret_cast<uintptr_t>(p.out);
  return bits % 16 == 0 && kernel.supported(p) && workspace_of(p, kernel) <= s.workspace_bytes();
}

// Every kernel with the two ways through the tiles: one tile of columns along all tokens, or eight,
// which read the tokens once for all of them.
struct Variant {
  const ExponentialKernel* kernel;
  int swizzle;
};
std::vector<Variant> variants_of(const CudaStream& s, DType type, const ExponentialProduct& p) {
  std::vector<Variant> variants;
  if (type != DType::bf16 || s.capability() != 90) return variants;
  const ExponentialKernels kernels = exponential_kernels();
  for (int i = 0; i < kernels.count; ++i) {
    if (!serves(s, p, *kernels.list[i])) continue;
    for (const int swizzle : {8, 1}) variants.push_back({kernels.list[i], swizzle});
  }
  return variants;
}

// All but x times the shares. `e` and what goes with it can be overwritten again and again.
void exponentials_and_shares(CudaStream& s, const std::vector<Variant>& variants,
                             ExponentialProduct p, const Head& h) {
  auto* shifts = static_cast<float*>(s.workspace());
  p.vocabulary = h.vocabulary;
  p.shifts = shifts;
  p.targets = h.targets.as<int32_t>();
  p.parts = shifts + p.tokens;
  target_shifts(s, h.x, h.w, h.targets, shifts);
  std::vector<std::function<void()>> runs;
  for (const Variant& v : variants) {
    runs.emplace_back([&s, p, v]() mutable {
      p.swizzle = v.swizzle;
      CUDA_CHECK(v.kernel->launch(p, s.multiprocessors_for_products(), s.stream()));
    });
  }
  const std::string key = shape_key("exponential", s, product(h.x, h.w, true, h.e));
  const auto best = static_cast<size_t>(fastest(s, key + std::to_string(runs.size()), runs));
  runs[best]();
  const int64_t tile = variants[best].kernel->tile_columns;
  token_shares(s, p.parts, (p.columns + tile - 1) / tile, h.targets, h.factor, h.state, h.losses,
               h.shares, h.e);
}

// As many rows as x has times their shares, in memory that nobody reads.
void scale_elsewhere(CudaStream& s, const Head& h) {
  const int64_t rows = h.shares.numel(), columns = h.x.dim(-1);
  const int64_t room = static_cast<int64_t>(s.second_workspace_bytes()) /
                       (columns * static_cast<int64_t>(size_of(h.x.dtype)));
  for (int64_t first = 0; room > 0 && first < rows; first += room) {
    const int64_t count = std::min(room, rows - first);
    const Tensor place(s.second_workspace(), h.x.dtype, {count, columns});
    cuda::scale_rows(s, h.shares.rows(first, count), place);
  }
}

}  // namespace

bool linear_cross_entropy_pays(Stream& stream, const Tensor& x, const Tensor& w,
                               const Tensor& targets, int64_t vocabulary, const Tensor& losses,
                               const Tensor& shares, const Tensor& e) {
  CudaStream& s = cuda_stream(stream);
  const ExponentialProduct p = problem(x, w, e);
  const std::vector<Variant> variants = variants_of(s, x.dtype, p);
  if (variants.empty()) return false;
  const Head h{x, w, targets, vocabulary, 1, nullptr, losses, shares, e};
  const auto joint = [&] {
    exponentials_and_shares(s, variants, p, h);
    scale_elsewhere(s, h);  // for x
    scale_elsewhere(s, h);  // for its gradient
  };
  const auto apart = [&] {
    matmul(s, product(x, w, true, e));
    cuda::cross_entropy(s, e, targets, vocabulary, true, 1, nullptr, losses);
  };
  return fastest(s, shape_key("head", s, product(x, w, true, e)), {joint, apart}) == 0;
}

void linear_cross_entropy(Stream& stream, const Tensor& x, const Tensor& w, const Tensor& targets,
                          int64_t vocabulary, double factor, const StepState* state,
                          const Tensor& losses, const Tensor& shares, const Tensor& e) {
  CudaStream& s = cuda_stream(stream);
  const ExponentialProduct p = problem(x, w, e);
  const std::vector<Variant> variants = variants_of(s, x.dtype, p);
  if (variants.empty()) {
    throw DeviceError(fmt::format(
        "linear_cross_entropy: no kernel for {} tokens, {} columns and {} inner in {} on this GPU",
        p.tokens, p.columns, p.inner, dtype_name(x.dtype)));
  }
  exponentials_and_shares(s, variants, p,
                          {x, w, targets, vocabulary, factor, state, losses, shares, e});
  cuda::scale_rows(s, shares, x);
}

}  // namespace tally::train::cuda
