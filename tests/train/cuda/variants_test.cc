// The variants of an operation that autotune chooses from, each in turn: the operations' own tests
// see only the fastest one of the machine.
#include "tests/train/cuda/variants.h"

#include "src/ops/linear/gelu_kernels.h"

namespace tally::train {
namespace {

// Sizes that CUTLASS's kernels serve: tokens that no tile divides, fewer than a tile, and several
// tiles in each direction.
struct Size {
  int64_t tokens, features, inner;
};
const std::vector<Size> sizes = {{300, 256, 72}, {5, 512, 64}, {1024, 768, 200}};

// How many of CUTLASS's kernels serve these operands here.
int fused(const Kind& kind, const cuda::KernelList<cuda::FusedKernel>& kernels) {
  const Both b(kind);
  return cuda::cuda_stream(*b.gpu).capability() == 90 ? kernels.count : 0;
}

TEST_CASE("cuda: each variant of linear_forward, with and without a residual" * NEEDS_GPU) {
  for (const Kind& kind : kinds()) {
    for (const Size& n : sizes) {
      for (const bool shortcut : {false, true}) {
        Both b(kind);
        const Pair x = b.input({n.tokens, n.inner}), w = b.input({n.features, n.inner}),
                   bias = b.input({n.features}), y = b.output({n.tokens, n.features});
        const Pair residual = shortcut ? b.input({n.tokens, n.features}) : Pair();
        linear_forward(*b.cpu, x.cpu, {w.cpu, bias.cpu}, Out(y.cpu), residual.cpu);
        const int variants = each_variant(b, [&] {
          b.poison(y);
          linear_forward(*b.gpu, x.gpu, {w.gpu, bias.gpu}, Out(y.gpu), residual.gpu);
          CHECK_CLOSE(b, y, kind.tolerance);
        });
        CHECK(variants >= fused(kind, cuda::fused_kernels(shortcut ? cuda::FusedWork::bias_residual
                                                                   : cuda::FusedWork::bias,
                                                          kind.type)));
      }
    }
  }
}

TEST_CASE("cuda: each variant of linear_activation_forward" * NEEDS_GPU) {
  for (const Kind& kind : kinds()) {
    for (const Size& n : sizes) {
      for (const SavedValue keeps : {SavedValue::input, SavedValue::derivative}) {
        Both b(kind);
        const Pair x = b.input({n.tokens, n.inner}), w = b.input({n.features, n.inner}, 0.3),
                   bias = b.input({n.features});
        const Pair pre = b.output({n.tokens, n.features}), y = b.output({n.tokens, n.features});
        linear_activation_forward(*b.cpu, x.cpu, {w.cpu, bias.cpu},
                                  {MlpActivation::gelu_tanh, keeps}, {Out(pre.cpu), Out(y.cpu)});
        const int variants = each_variant(b, [&] {
          b.poison(pre);
          b.poison(y);
          linear_activation_forward(*b.gpu, x.gpu, {w.gpu, bias.gpu},
                                    {MlpActivation::gelu_tanh, keeps}, {Out(pre.gpu), Out(y.gpu)});
          CHECK_CLOSE(b, pre, kind.tolerance);
          CHECK_CLOSE(b, y, kind.tolerance);
        });
        CHECK(variants >= 1 + fused(kind, cuda::gelu_forward_kernels(
                                              kind.type, {MlpActivation::gelu_tanh, keeps})));
      }
    }
  }
}

TEST_CASE("cuda: each variant of linear_backward_input_activation, bias sums too" * NEEDS_GPU) {
  for (const Kind& kind : kinds()) {
    for (const Size& n : sizes) {
      for (const SavedValue keeps : {SavedValue::input, SavedValue::derivative}) {
        Both b(kind);
        const Pair dy = b.input({n.tokens, n.inner}), w = b.input({n.inner, n.features}, 0.3),
                   kept = b.input({n.tokens, n.features}), db = b.sum({n.features}),
                   dpre = b.output({n.tokens, n.features});
        const Tensor db_before = b.copy_of(db.gpu);
        linear_backward_input_activation(*b.cpu, dy.cpu, w.cpu,
                                         {kept.cpu, {MlpActivation::gelu_tanh, keeps}},
                                         {Out(dpre.cpu), Out(db.cpu)});
        const int variants = each_variant(b, [&] {
          b.restore(db, db_before);
          b.poison(dpre);
          linear_backward_input_activation(*b.gpu, dy.gpu, w.gpu,
                                           {kept.gpu, {MlpActivation::gelu_tanh, keeps}},
                                           {Out(dpre.gpu), Out(db.gpu)});
          CHECK_CLOSE(b, dpre, kind.tolerance);
          CHECK_CLOSE(b, db, kind.tolerance);
        });
        INFO(std::string(kind.name), ", ", n.tokens, " tokens");
        CHECK(variants == 1 + fused(kind, cuda::gelu_backward_kernels(
                                              kind.type, {MlpActivation::gelu_tanh, keeps})));
      }
    }
  }
}

// More bytes than a piece should have, or than the second workspace holds.
TEST_CASE("cuda: each variant of linear_backward_input_activation in pieces" * NEEDS_GPU) {
  const Kind kind{DType::f32, MatmulMode::ieee, "f32", 1e-5};
  const int64_t rows = 9000, in = 2048, out = 8;
  for (const bool in_place : {false, true}) {
    Both b(kind);
    const Pair dy = b.input({rows, out}), w = b.input({out, in}), pre = b.input({rows, in}),
               db = b.sum({in}), dpre = in_place ? pre : b.output({rows, in});
    const Tensor db_before = b.copy_of(db.gpu), pre_before = b.copy_of(pre.gpu);
    linear_backward_input_activation(*b.cpu, dy.cpu, w.cpu, {pre.cpu},
                                     {Out(dpre.cpu), Out(db.cpu)});
    const int variants = each_variant(b, [&] {
      b.restore(db, db_before);
      b.poison(dpre);
      b.restore(pre, pre_before);
      linear_backward_input_activation(*b.gpu, dy.gpu, w.gpu, {pre.gpu},
                                       {Out(dpre.gpu), Out(db.gpu)});
      CHECK_CLOSE(b, dpre, kind.tolerance);
      CHECK_CLOSE(b, db, kind.tolerance);
    });
    CHECK(variants == (in_place ? 3 : 2));
  }
}

TEST_CASE("cuda: GELU's derivative is saved where kernels serve it" * NEEDS_GPU) {
  const Kind kind{DType::bf16, MatmulMode::ieee, "bf16", 1e-2};
  Both b(kind);
  const auto keeps = [&] {
    return faster_saved_value(*b.gpu, kind.type, 256, 72, MlpActivation::gelu_tanh);
  };
  const bool served =
      fused(kind, cuda::gelu_backward_kernels(
                      kind.type, {MlpActivation::gelu_tanh, SavedValue::derivative})) > 0;
  CHECK(keeps() == (served ? SavedValue::derivative : SavedValue::input));
  b.gpu.options.fusions.gelu = false;
  CHECK(keeps() == SavedValue::input);
}

}  // namespace
}  // namespace tally::train
