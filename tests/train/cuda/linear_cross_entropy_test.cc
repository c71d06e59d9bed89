// Fused linear cross-entropy against float64.
#include <algorithm>
#include <cmath>
#include <random>

#include "src/device/graph.h"
#include "src/ops/linear/linear.h"
#include "src/ops/loss/fused_gemm.h"
#include "src/ops/loss/loss.h"
#include "src/ops/rows/rows.h"
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
        labels(b.integers({n.tokens}, -1, static_cast<int>(n.vocabulary) - 1)),
        losses(b.statistics({n.tokens})),
        scales(b.statistics({n.tokens})),
        e(b.output({n.tokens, n.columns})),
        state(b) {
    StepState values{};
    values.loss_scale = 8;
    state.set(values);
  }
  void run_cpu(const Both& b, const Head& n) const {
    linear_cross_entropy(*b.cpu, {Out(x.cpu), w.cpu, {labels.cpu, n.vocabulary}},
                         {0.25, state.cpu()}, {Out(losses.cpu), Out(scales.cpu), Out(e.cpu)});
  }
  void run_gpu(const Both& b, const Head& n) const {
    for (const Pair& p : {losses, scales, e}) b.poison(p);
    linear_cross_entropy(*b.gpu, {Out(x.gpu), w.gpu, {labels.gpu, n.vocabulary}},
                         {0.25, state.gpu()}, {Out(losses.gpu), Out(scales.gpu), Out(e.gpu)});
  }
  void run(const Both& b, const Head& n) const {
    run_cpu(b, n);
    run_gpu(b, n);
  }
  Pair x, w, labels, losses, scales, e;
  BothStates state;
};

// The gradient at the logits, scales times e: the two devices take exponentials relative to different
// numbers.
void make_gradients(Stream& s, const Operands& o, Tensor Pair::*side) {
  scale_rows(s, o.scales.*side, Out(o.e.*side));
}
// The labels' entries, which are as large as all others of their token together, become 0.
void clear_labels(Both& b, const Operands& o, Tensor Pair::*side, Stream& s) {
  static const double zero = 0;
  const std::vector<double> labels = Both::read(o.labels.cpu, *b.cpu);
  const Tensor& e = o.e.*side;
  for (size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] < 0) continue;
    const auto at = static_cast<int64_t>(i) * e.dim(1) + static_cast<int64_t>(labels[i]);
    s.copy(e.as<char>() + static_cast<size_t>(at) * size_of(e.dtype), &zero, size_of(e.dtype));
  }
  s.synchronize();
}

TEST_CASE("cuda: each variant of linear_cross_entropy, and the gradients that follow" * NEEDS_GPU) {
  if (!served(Both(bf16))) return;
  for (const Head& n : heads) {
    INFO(n.tokens, " tokens, ", n.vocabulary, " of ", n.columns, " columns");
    Both b(bf16);
    const Operands o(b, n, 2 / std::sqrt(static_cast<double>(n.inner)));
    const Pair dw = b.statistics({n.columns, n.inner}), dx = b.output({n.tokens, n.inner});
    const auto gradients = [&](Stream& s, Tensor Pair::*side) {
      linear_backward_weight(s, o.e.*side, o.x.*side, {Out(dw.*side), {}, false});
      linear_backward_input(s, o.e.*side, o.w.*side, Out(dx.*side), {});
      scale_rows(s, o.scales.*side, Out(dx.*side));
      make_gradients(s, o, side);
      clear_labels(b, o, side, s);
    };
    o.run_cpu(b, n);
    gradients(*b.cpu, &Pair::cpu);
    const Tensor x = b.copy_of(o.x.gpu);
    const int variants = each_variant(b, [&] {
      b.restore(o.x, x);
      b.poison(dw);
      b.poison(dx);
      o.run_gpu(b, n);
      gradients(*b.gpu, &Pair::gpu);
      CHECK_CLOSE(b, o.losses, 1e-5);
      CHECK_CLOSE(b, dw, bf16.tolerance);
      CHECK_CLOSE(b, dx, bf16.tolerance);
      CHECK_CLOSE(b, o.e, bf16.tolerance);
    });
    CHECK(variants == 2 * cuda::cross_entropy_kernels().count);
  }
}

// A trained model is confident about most tokens: then the gradient is small compared to its two
// parts.
TEST_CASE("cuda: linear_cross_entropy of confident or wrong tokens" * NEEDS_GPU) {
  Both b(bf16);
  if (!served(b)) return;
  const Head n{128, 500, 512, 64};
  // Token i is `times` of column i, so that logit i is 64 times that and the others some 8.
  for (const double times : {0.2, 2.0, 30.0}) {
    for (const bool right : {true, false}) {
      Operands o(b, n, 1);
      std::vector<double> x = Both::read(o.w.gpu, *b.gpu), labels;
      x.resize(static_cast<size_t>(n.tokens * n.inner));
      for (double& v : x) v *= times;
      round_all(x, DType::bf16);
      for (int i = 0; i < n.tokens; ++i) labels.push_back(right ? i : i + 1);
      Both::write(o.x.cpu, *b.cpu, x);
      Both::write(o.x.gpu, *b.gpu, x);
      Both::write(o.labels.cpu, *b.cpu, labels);
      Both::write(o.labels.gpu, *b.gpu, labels);
      // Of the token's own column, whose logit is the largest by far, and of its label's.
      std::vector<double> own(labels.size()), of_label(labels.size());
      const std::vector<double> w = Both::read(o.w.cpu, *b.cpu);
      const auto inner = static_cast<size_t>(n.inner);
      for (size_t k = 0; k < x.size(); ++k) {
        const size_t i = k / inner, c = k % inner;
        own[i] += x[k] * w[i * inner + c];
        of_label[i] += x[k] * w[static_cast<size_t>(labels[i]) * inner + c];
      }
      o.run(b, n);
      INFO(times, right ? " right" : " wrong");
      // The sums span many powers of ten, so each is compared by itself.
      const std::vector<double> want = Both::read(o.losses.cpu, *b.cpu),
                                got = Both::read(o.losses.gpu, *b.gpu);
      for (size_t i = 0; i < want.size(); ++i) {
        INFO("token ", i);
        // Where the loss is beyond the exponentials' range, it is the difference of two logits that are
        // rounded to bf16, as the unfused operations round them: each is off by up to 2^-8 of itself.
        const bool redone = want[i] >= (cuda::largest_exponent - 1) * std::log(2.0);
        if (times > 10) CHECK(redone == !right);
        const double bound =
            redone ? std::ldexp(std::abs(own[i]) + std::abs(of_label[i]), -8) : 1e-3 * want[i];
        CHECK(std::abs(got[i] - want[i]) <= bound + 1e-37);
      }
      make_gradients(*b.cpu, o, &Pair::cpu);
      make_gradients(*b.gpu, o, &Pair::gpu);
      CHECK_CLOSE(b, o.e, bf16.tolerance);
    }
  }
}

// Logits of hundreds, positive and negative: multiples of 8 that bf16 holds exactly, so that
// rounding them makes no difference. Most rows are out of the exponentials' range and are redone.
struct FarLogits {
  FarLogits(Both& b, const Head& n) : operands(b, n, 1) {
    std::mt19937 random(3);
    x.assign(static_cast<size_t>(n.tokens * n.inner), 0);
    for (int64_t i = 0; i < n.tokens; ++i) x[static_cast<size_t>(i * n.inner + i % n.inner)] = 8;
    std::vector<double> w(static_cast<size_t>(n.columns * n.inner));
    for (double& v : w) v = (random() % 2 ? 1.0 : -1.0) * (1 + random() % 60);
    Both::write(operands.w.cpu, *b.cpu, w);
    Both::write(operands.w.gpu, *b.gpu, w);
    set_x(b);
  }
  void set_x(Both& b) const {
    Both::write(operands.x.cpu, *b.cpu, x);
    Both::write(operands.x.gpu, *b.gpu, x);
  }
  Operands operands;
  std::vector<double> x;
};

TEST_CASE("cuda: linear_cross_entropy is exact for logits up to 480 either way" * NEEDS_GPU) {
  if (!served(Both(bf16))) return;
  // Columns and rows to redo end within their tiles.
  for (const Head& n :
       {Head{128, 500, 512, 64}, Head{384, 1001, 1032, 200}, Head{128, 70, 72, 72}}) {
    INFO(n.tokens, " tokens, ", n.vocabulary, " of ", n.columns, " columns");
    Both b(bf16);
    const FarLogits far(b, n);
    const Operands& o = far.operands;
    const Tensor x = b.copy_of(o.x.gpu);
    o.run_cpu(b, n);
    make_gradients(*b.cpu, o, &Pair::cpu);
    const std::vector<double> want = Both::read(o.losses.cpu, *b.cpu);
    CHECK(*std::max_element(want.begin(), want.end()) > 400);
    each_variant(b, [&] {
      b.restore(o.x, x);
      o.run_gpu(b, n);
      const std::vector<double> got = Both::read(o.losses.gpu, *b.gpu);
      for (size_t i = 0; i < want.size(); ++i) {
        INFO("token ", i);
        CHECK(std::abs(got[i] - want[i]) <= 1e-5 * want[i] + 1e-37);
      }
      make_gradients(*b.gpu, o, &Pair::gpu);
      CHECK_CLOSE(b, o.e, bf16.tolerance);
    });
  }
}

// Rows within the exponentials' range and rows that are redone.
TEST_CASE("cuda: a recorded linear_cross_entropy divides by the labels of the step's state" *
          NEEDS_GPU) {
  Both b(bf16);
  if (!served(b)) return;
  const Head n{128, 500, 512, 64};
  const FarLogits far(b, n);
  const Operands& o = far.operands;
  const auto graph = StepGraph::make(*b.gpu);
  for (const double counted : {1.0, 2.0, 4.0, 8.0, 3.0, 0.0, 8.0}) {  // replays from the third
    const double factor = counted > 0 ? 3 / counted : 0;
    far.set_x(b);  // the operation scales it
    linear_cross_entropy(*b.cpu, {Out(o.x.cpu), o.w.cpu, {o.labels.cpu, n.vocabulary}}, {factor},
                         {Out(o.losses.cpu), Out(o.scales.cpu), Out(o.e.cpu)});
    StepState values{};
    values.loss_scale = 1;
    values.counted[0] = counted;
    o.state.set(values);
    graph->run([&] {
      linear_cross_entropy(*b.gpu, {Out(o.x.gpu), o.w.gpu, {o.labels.gpu, n.vocabulary}},
                           {LossFactor(3, o.state.gpu()->counted), o.state.gpu()},
                           {Out(o.losses.gpu), Out(o.scales.gpu), Out(o.e.gpu)});
    });
    INFO("factor ", factor);
    make_gradients(*b.cpu, o, &Pair::cpu);
    make_gradients(*b.gpu, o, &Pair::gpu);
    CHECK_CLOSE(b, o.e, bf16.tolerance);
  }
}

TEST_CASE("cuda: linear_cross_entropy preserves NaNs and infinities" * NEEDS_GPU) {
  Both b(bf16);
  if (!served(b)) return;
  const Head n{128, 500, 512, 64};
  FarLogits far(b, n);
  for (const double bad : {std::nan(""), HUGE_VAL, -HUGE_VAL}) {
    for (const int label : {3, 4, 5, 6}) {  // whose logit may be infinite upwards or downwards
      std::vector<double> labels(static_cast<size_t>(n.tokens), label);
      Both::write(far.operands.labels.cpu, *b.cpu, labels);
      Both::write(far.operands.labels.gpu, *b.gpu, labels);
      const double was = far.x[5 * 64 + 5];
      far.x[5 * 64 + 5] = bad;
      far.set_x(b);
      far.operands.run(b, n);
      far.x[5 * 64 + 5] = was;
      INFO(bad, ", label ", label);
      const std::vector<double> losses = Both::read(far.operands.losses.gpu, *b.gpu);
      for (size_t i = 0; i < losses.size(); ++i) CHECK(std::isnan(losses[i]) == (i == 5));
    }
  }
}

TEST_CASE("cuda: linear_cross_entropy pays where it serves and is chosen; x stays" * NEEDS_GPU) {
  for (const Kind& kind : kinds()) {
    const auto pays = [&](const Head& n, int forced) {
      Both b(kind);
      const Forced choice(cuda::tuned_gemms(cuda::cuda_stream(*b.gpu)), forced);
      const Operands o(b, n, 1);
      const std::vector<double> x = Both::read(o.x.gpu, *b.gpu);
      const bool answer =
          linear_cross_entropy_pays(*b.gpu, {Out(o.x.gpu), o.w.gpu, {o.labels.gpu, n.vocabulary}},
                                    {Out(o.losses.gpu), Out(o.scales.gpu), Out(o.e.gpu)});
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
  for (const Kind& kind : types()) {
    for (const int64_t columns : {int64_t{7}, int64_t{64}}) {
      Both b(kind);
      const Pair x = b.input({33, columns}), factors = b.sum({33});
      scale_rows(*b.cpu, factors.cpu, Out(x.cpu));
      scale_rows(*b.gpu, factors.gpu, Out(x.gpu));
      CHECK_CLOSE(b, x, kind.tolerance);
    }
  }
}

}  // namespace
}  // namespace tally::train
