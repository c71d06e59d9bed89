// Every kernel with a bias, a residual or GELU in its epilogue, each by itself, because timing
// decides which of them an operation takes.
#include "src/device/cuda/cuda_stream.h"
#include "src/ops/column_sums.h"
#include "src/ops/linear/gelu_kernels.h"
#include "tests/train/cuda/both.h"

namespace tally::train {
namespace {

// Tokens that no tile divides, fewer than a tile, and several tiles in each direction, in both
// orders; tiles of tokens that are not a multiple of those that are traversed together.
struct Size {
  int64_t tokens, features, inner;
  int swizzle = 1;
};
const std::vector<Size> sizes = {
    {300, 256, 72}, {5, 512, 64}, {1024, 768, 200}, {1024, 768, 200, 8}, {700, 896, 72, 8}};
// Features that no tile divides, for the kernels that serve them.
std::vector<Size> all_sizes() {
  std::vector<Size> all = sizes;
  all.insert(all.end(), {{300, 200, 72}, {64, 8, 64}, {1000, 1600, 200}});
  return all;
}
const Kind bf16{DType::bf16, MatmulMode::ieee, "bf16", 1e-2};
const Kind f16{DType::f16, MatmulMode::ieee, "f16", 2e-3};

cuda::FusedGemm problem(const Size& n, const Pair& x, const Pair& w, const Pair& bias,
                        const Pair& pre, const Pair& out) {
  cuda::FusedGemm p;
  p.tokens = n.tokens;
  p.features = n.features;
  p.inner = n.inner;
  p.x = x.gpu.data;
  p.weight = w.gpu.data;
  p.bias = bias.gpu.data;
  p.source = p.aux = pre.gpu.data;
  p.out = out.gpu.data;
  p.swizzle = n.swizzle;
  return p;
}

TEST_CASE("cuda: the GEMM with bias and residual in its epilogue" * NEEDS_GPU) {
  for (const bool shortcut : {false, true}) {
    const auto kernels = cuda::fused_kernels(
        shortcut ? cuda::FusedWork::bias_residual : cuda::FusedWork::bias, DType::bf16);
    for (const Size& n : all_sizes()) {
      Both b(bf16);
      auto& s = cuda::cuda_stream(*b.gpu);
      if (s.capability() != 90) return;
      const Pair x = b.input({n.tokens, n.inner}), w = b.input({n.features, n.inner}, 0.3),
                 bias = b.input({n.features}), y = b.output({n.tokens, n.features});
      const Pair residual = shortcut ? b.input({n.tokens, n.features}) : Pair();
      linear_forward(*b.cpu, x.cpu, {w.cpu, bias.cpu}, Out(y.cpu), residual.cpu);
      const cuda::FusedGemm p = problem(n, x, w, bias, residual, y);
      for (const cuda::FusedKernel& kernel : kernels) {
        CAPTURE(std::string(kernel.name));
        b.poison(y);
        REQUIRE(kernel.supported(p));
        REQUIRE(kernel.launch(p, s.sms(), s.stream()) == cudaSuccess);
        CHECK_CLOSE(b, y, bf16.tolerance);
      }
    }
  }
}

TEST_CASE("cuda: the GEMM with GELU in its epilogue" * NEEDS_GPU) {
  struct Case {
    Kind kind;
    SavedValue keeps;
    MlpActivation gelu;
  };
  for (const auto& [kind, keeps, gelu] :
       {Case{bf16, SavedValue::input, MlpActivation::gelu_tanh},
        Case{bf16, SavedValue::derivative, MlpActivation::gelu_tanh},
        Case{bf16, SavedValue::derivative, MlpActivation::gelu_erf},
        Case{f16, SavedValue::derivative, MlpActivation::gelu_erf}}) {
    const auto kernels = cuda::gelu_forward_kernels(kind.type, {gelu, keeps});
    for (const Size& n : all_sizes()) {
      Both b(kind);
      auto& s = cuda::cuda_stream(*b.gpu);
      if (s.capability() != 90) return;
      const Pair x = b.input({n.tokens, n.inner}), w = b.input({n.features, n.inner}, 0.3),
                 bias = b.input({n.features});
      const Pair pre = b.output({n.tokens, n.features}), y = b.output({n.tokens, n.features});
      linear_activation_forward(*b.cpu, x.cpu, {w.cpu, bias.cpu}, {gelu, keeps},
                                {Out(pre.cpu), Out(y.cpu)});
      const cuda::FusedGemm p = problem(n, x, w, bias, pre, y);
      for (const cuda::FusedKernel& kernel : kernels) {
        CAPTURE(std::string(kernel.name));
        b.poison(pre);
        b.poison(y);
        REQUIRE(kernel.supported(p));
        REQUIRE(kernel.launch(p, s.sms(), s.stream()) == cudaSuccess);
        CHECK_CLOSE(b, pre, kind.tolerance);
        CHECK_CLOSE(b, y, kind.tolerance);
      }
    }
  }
}

TEST_CASE("cuda: the GEMM with GELU's gradient in its epilogue, in place" * NEEDS_GPU) {
  struct Case {
    Kind kind;
    SavedValue keeps;
    MlpActivation gelu;
  };
  for (const auto& [kind, keeps, gelu] :
       {Case{bf16, SavedValue::input, MlpActivation::gelu_tanh},
        Case{bf16, SavedValue::derivative, MlpActivation::gelu_tanh},
        Case{f16, SavedValue::derivative, MlpActivation::gelu_erf}}) {
    const auto kernels = cuda::gelu_backward_kernels(kind.type, {gelu, keeps});
    for (const Size& n : sizes) {
      Both b(kind);
      auto& s = cuda::cuda_stream(*b.gpu);
      if (s.capability() != 90) return;
      const Pair dy = b.input({n.tokens, n.inner}), w = b.input({n.inner, n.features}, 0.3),
                 pre = b.input({n.tokens, n.features}), db = b.sum({n.features});
      const Tensor pre_before = b.copy_of(pre.gpu), db_before = b.copy_of(db.gpu);
      linear_backward_input_activation(*b.cpu, dy.cpu, w.cpu, {pre.cpu, {gelu, keeps}},
                                       {Out(pre.cpu), Out(db.cpu)});
      cuda::FusedGemm p = problem(n, dy, w, Pair(), pre, pre);
      for (const cuda::FusedKernel& kernel : kernels) {
        CAPTURE(std::string(kernel.name));
        const int64_t parts = (n.tokens + kernel.tile_tokens - 1) / kernel.tile_tokens;
        b.restore(pre, pre_before);
        b.restore(db, db_before);
        p.parts = static_cast<float*>(s.workspace());
        REQUIRE(kernel.supported(p));
        REQUIRE(kernel.launch(p, s.sms(), s.stream()) == cudaSuccess);
        cuda::add_shares(s, {p.parts, parts, n.features}, Out(db.gpu));
        CHECK_CLOSE(b, pre, kind.tolerance);
        CHECK_CLOSE(b, db, kind.tolerance);
      }
    }
  }
}

TEST_CASE("cuda: fused GEMMs refuse what they do not serve" * NEEDS_GPU) {
  for (const auto& kernels :
       {cuda::fused_kernels(cuda::FusedWork::bias, DType::bf16),
        cuda::fused_kernels(cuda::FusedWork::bias_residual, DType::bf16),
        cuda::gelu_forward_kernels(DType::bf16, {}),
        cuda::gelu_forward_kernels(DType::bf16, {MlpActivation::gelu_tanh, SavedValue::derivative}),
        cuda::gelu_forward_kernels(DType::bf16, {MlpActivation::gelu_erf, SavedValue::derivative}),
        cuda::gelu_backward_kernels(DType::bf16, {}),
        cuda::gelu_backward_kernels(DType::bf16,
                                    {MlpActivation::gelu_tanh, SavedValue::derivative})}) {
    const bool with_sums =
        kernels.first == cuda::gelu_backward_kernels(DType::bf16, {}).first ||
        kernels.first == cuda::gelu_backward_kernels(
                             DType::bf16, {MlpActivation::gelu_tanh, SavedValue::derivative})
                             .first;
    for (const cuda::FusedKernel& kernel : kernels) {
      cuda::FusedGemm p;
      p.tokens = 64;
      p.inner = 64;
      p.features = kernel.tile_features + 4;
      CHECK_FALSE(kernel.supported(p));
      p.features = kernel.tile_features + 8;
      CHECK(kernel.supported(p) == !with_sums);
      p.features = kernel.tile_features;
      CHECK(kernel.supported(p));
      p.inner = 60;
      CHECK_FALSE(kernel.supported(p));
    }
  }
}

}  // namespace
}  // namespace tally::train
