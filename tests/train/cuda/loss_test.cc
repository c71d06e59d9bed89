#include "src/ops/loss/loss.h"

#include "tests/train/cuda/both_states.h"

namespace tally::train {
namespace {

TEST_CASE("cuda: cross_entropy and its gradient" * NEEDS_GPU) {
  struct Shape {
    int64_t rows, vocabulary, padded;
  };
  for (const Kind& kind : types()) {
    for (const Shape& n : {Shape{9, 50257, 50304}, Shape{40, 57, 57}, Shape{17, 1000, 1024},
                           Shape{3, 2, 8}, Shape{5, 1001, 1024}, Shape{6, 1024, 1024}}) {
      Both b(kind);
      BothStates state(b);
      StepState values{};
      values.loss_scale = 8;
      state.set(values);
      const Pair logits = b.input({n.rows, n.padded}, 3);
      const Pair targets = b.integers({n.rows}, -1, static_cast<int>(n.vocabulary) - 1);
      const Pair losses = b.statistics({n.rows});
      INFO("vocabulary ", n.vocabulary);
      cross_entropy(*b.cpu, Out(logits.cpu), {targets.cpu, n.vocabulary}, {}, Out(losses.cpu));
      cross_entropy(*b.gpu, Out(logits.gpu), {targets.gpu, n.vocabulary}, {}, Out(losses.gpu));
      CHECK_CLOSE(b, losses, kind.type == DType::f64 ? 1e-12 : 1e-5);
      cross_entropy(*b.cpu, Out(logits.cpu), {targets.cpu, n.vocabulary},
                    LossGradient{0.25, state.cpu()}, Out(losses.cpu));
      cross_entropy(*b.gpu, Out(logits.gpu), {targets.gpu, n.vocabulary},
                    LossGradient{0.25, state.gpu()}, Out(losses.gpu));
      CHECK_CLOSE(b, losses, kind.type == DType::f64 ? 1e-12 : 1e-5);
      CHECK_CLOSE(b, logits, kind.tolerance);
    }
  }
}

TEST_CASE("cuda: add_losses" * NEEDS_GPU) {
  for (const Kind& kind : types()) {
    Both b(kind);
    BothStates state(b);
    const Pair losses = b.sum({70001});
    for (int turn = 0; turn < 2; ++turn) {
      add_losses(*b.cpu, losses.cpu, 0.125, state.cpu()->loss_sums);
      add_losses(*b.gpu, losses.gpu, 0.125, state.gpu()->loss_sums);
    }
    CHECK(state.read().loss() == doctest::Approx(state.cpu()->loss()).epsilon(1e-10));
  }
}

TEST_CASE("cuda: labels that are predicted" * NEEDS_GPU) {
  for (const Kind& kind : types()) {
    for (const int64_t vocabulary : {2, 3, 300}) {
      Both b(kind);
      const int64_t rows = 5000, padded = vocabulary + 5;
      const Pair logits = b.input({rows, padded}, 3);
      const Pair labels = b.integers({rows}, -1, static_cast<int>(vocabulary) - 1);
      const Pair correct = b.put({1}, DType::f64, DType::f64, {0.0});
      for (int turn = 0; turn < 2; ++turn) {
        add_correct(*b.cpu, logits.cpu, {labels.cpu, vocabulary}, correct.cpu.as<double>());
        add_correct(*b.gpu, logits.gpu, {labels.gpu, vocabulary}, correct.gpu.as<double>());
      }
      const double expected = Both::read(correct.cpu, *b.cpu).front();
      CHECK(expected > 0);
      CHECK(Both::read(correct.gpu, *b.gpu).front() == expected);
    }
  }
}

}  // namespace
}  // namespace tally::train
