// A head's product and its loss in one kernel, against float64.
#include "src/ops/linear/linear.h"
#include "src/ops/loss/fused_gemm.h"
#include "src/ops/loss/loss.h"
#include "tests/train/cuda/both_states.h"
#include "tests/train/cuda/variants.h"

namespace tally::train {
namespace {

const Kind bf16{DType::bf16, MatmulMode::ieee, "bf16", 1e-2};

// Tokens are whole tiles; columns end within a tile, and the vocabulary before them.
struct Head {
  int64_t tokens, vocabulary, columns, inner;
};
const std::vector<Head> heads = {
    {128, 1000, 1024, 72}, {384, 50257, 50304, 64}, {256, 57, 64, 200}, {128, 130, 136, 768}};

bool served(const Both& b) {
  return cuda::cross_entropy_kernels().count > 0 && cuda::cuda_stream(*b.gpu).capability() == 90;
}

struct Operands {
  Operands(Both& b, const Head& n, double deviation)
      : x(b.input({n.tokens, n.inner})),
        w(b.input({n.columns, n.inner}, deviation)),
        targets(b.integers({n.tokens}, -1, static_cast<int>(n.vocabulary) - 1)),
        losses(b.statistics({n.tokens})),
        shares(b.statistics({n.tokens})),
        e(b.output({n.tokens, n.columns})),
        state(b) {
    StepState values{};
    values.loss_scale = 8;
    state.set(values);
  }
  void run(Both& b, const Head& n) const {
    linear_cross_entropy(*b.cpu, x.cpu, w.cpu, targets.cpu, n.vocabulary, 0.25, state.cpu(),
                         losses.cpu, shares.cpu, e.cpu);
    linear_cross_entropy(*b.gpu, x.gpu, w.gpu, targets.gpu, n.vocabulary, 0.25, state.gpu(),
                         losses.gpu, shares.gpu, e.gpu);
  }
  Pair x, w, targets, losses, shares, e;
  BothStates state;
};

// The targets' entries are as large as all others of their token together: 0 on both sides.
void clear_targets(Both& b, const Operands& o, const Head& n) {
  const std::vector<double> targets = Both::read(o.targets.cpu, *b.cpu);
  const auto clear = [&](const Tensor& e, Stream& s) {
    std::vector<double> values = Both::read(e, s);
    for (size_t i = 0; i < targets.size(); ++i) {
      if (targets[i] < 0) continue;
      values[i * static_cast<size_t>(n.columns) + static_cast<size_t>(targets[i])] = 0;
    }
    Both::write(e, s, values);
  };
  clear(o.e.cpu, *b.cpu);
  clear(o.e.gpu, *b.gpu);
}

TEST_CASE("cuda: each variant of linear_cross_entropy, and the gradients that follow" * NEEDS_GPU) {
  if (!served(Both(bf16))) return;
  for (const Head& n : heads) {
    INFO(n.tokens, " tokens, ", n.vocabulary, " of ", n.columns, " columns");
    const int variants = each_variant(bf16, [&](Both& b) {
      const Operands o(b, n, 2 / std::sqrt(static_cast<double>(n.inner)));
      const Pair dw = b.statistics({n.columns, n.inner}), dx = b.output({n.tokens, n.inner});
      o.run(b, n);
      CHECK_CLOSE(b, o.losses, 1e-5);
      CHECK_CLOSE(b, o.shares, 1e-5);
      CHECK_CLOSE(b, o.e, bf16.tolerance);
      CHECK_CLOSE(b, o.x, bf16.tolerance);
      const auto gradients = [&](Stream& s, Tensor Pair::*side) {
        linear_backward_weight(s, o.e.*side, o.x.*side, dw.*side, Tensor(), false);
        linear_backward_input(s, o.e.*side, o.w.*side, dx.*side);
        scale_rows(s, o.shares.*side, dx.*side);
      };
      gradients(*b.cpu, &Pair::cpu);
      gradients(*b.gpu, &Pair::gpu);
      CHECK_CLOSE(b, dw, bf16.tolerance);
      CHECK_CLOSE(b, dx, bf16.tolerance);
      clear_targets(b, o, n);
      CHECK_CLOSE(b, o.e, bf16.tolerance);
    });
    CHECK(variants == 2 * cuda::cross_entropy_kernels().count);
  }
}

// A trained model is sure of most tokens: then the gradient is small beside each of its two parts.
TEST_CASE("cuda: linear_cross_entropy of tokens that are sure, or wrong" * NEEDS_GPU) {
  Both b(bf16);
  if (!served(b)) return;
  const Head n{128, 500, 512, 64};
  // Token i is `times` of column i, so that logit i is 64 times that and the others some 8.
  for (const double times : {0.2, 2.0, 30.0}) {
    for (const bool right : {true, false}) {
      Operands o(b, n, 1);
      std::vector<double> x = Both::read(o.w.gpu, *b.gpu), targets;
      x.resize(static_cast<size_t>(n.tokens * n.inner));
      for (double& v : x) v = rounded(v * times, DType::bf16);
      for (int i = 0; i < n.tokens; ++i) targets.push_back(right ? i : i + 1);
      Both::write(o.x.cpu, *b.cpu, x);
      Both::write(o.x.gpu, *b.gpu, x);
      Both::write(o.targets.cpu, *b.cpu, targets);
      Both::write(o.targets.gpu, *b.gpu, targets);
      o.run(b, n);
      INFO(times, right ? " right" : " wrong");
      // The sums lie over many powers of ten: each by itself.
      const std::vector<double> want = Both::read(o.losses.cpu, *b.cpu),
                                got = Both::read(o.losses.gpu, *b.gpu);
      for (size_t i = 0; i < want.size(); ++i) {
        INFO("token ", i);
        CHECK(std::abs(got[i] - want[i]) <= 1e-3 * want[i] + 1e-37);
      }
      CHECK_CLOSE(b, o.e, bf16.tolerance);
      CHECK_CLOSE(b, o.shares, 1e-2);
    }
  }
}

TEST_CASE("cuda: linear_cross_entropy shows what is not a number" * NEEDS_GPU) {
  Both b(bf16);
  if (!served(b)) return;
  const Head n{128, 500, 512, 64};
  Operands o(b, n, 1);
  std::vector<double> x = Both::read(o.x.gpu, *b.gpu);
  x[5 * static_cast<size_t>(n.inner)] = std::nan("");
  Both::write(o.x.cpu, *b.cpu, x);
  Both::write(o.x.gpu, *b.gpu, x);
  std::vector<double> targets(static_cast<size_t>(n.tokens), 3);
  Both::write(o.targets.cpu, *b.cpu, targets);
  Both::write(o.targets.gpu, *b.gpu, targets);
  o.run(b, n);
  const std::vector<double> losses = Both::read(o.losses.gpu, *b.gpu);
  for (size_t i = 0; i < losses.size(); ++i) CHECK(std::isnan(losses[i]) == (i == 5));
}

TEST_CASE("cuda: linear_cross_entropy pays where it serves and is chosen; x stays" * NEEDS_GPU) {
  for (const Kind& kind : kinds()) {
    const auto pays = [&](const Head& n, int forced) {
      Both b(kind);
      const Forced choice(cuda::gemm_plans(cuda::cuda_stream(*b.gpu)), forced);
      const Operands o(b, n, 1);
      const std::vector<double> x = Both::read(o.x.gpu, *b.gpu);
      const bool answer =
          linear_cross_entropy_pays(*b.gpu, o.x.gpu, o.w.gpu, o.targets.gpu, n.vocabulary,
                                    o.losses.gpu, o.shares.gpu, o.e.gpu);
      CHECK(Both::read(o.x.gpu, *b.gpu) == x);
      return answer;
    };
    const bool here = kind.type == DType::bf16 && served(Both(kind));
    for (const int forced : {0, 1}) CHECK(pays({128, 50, 64, 64}, forced) == (here && forced == 0));
    pays({128, 50, 64, 64}, -1);
    CHECK_FALSE(pays({100, 50, 64, 64}, 0));
    CHECK_FALSE(pays({128, 50, 60, 64}, 0));
    CHECK_FALSE(pays({128, 50, 64, 60}, 0));
  }
}

TEST_CASE("cuda: scale_rows" * NEEDS_GPU) {
  for (const Kind& kind : kinds()) {
    for (const int64_t columns : {int64_t{7}, int64_t{64}}) {
      Both b(kind);
      const Pair x = b.input({33, columns}), factors = b.sum({33});
      scale_rows(*b.cpu, factors.cpu, x.cpu);
      scale_rows(*b.gpu, factors.gpu, x.gpu);
      CHECK_CLOSE(b, x, kind.tolerance);
    }
  }
}

}  // namespace
}  // namespace tally::train
