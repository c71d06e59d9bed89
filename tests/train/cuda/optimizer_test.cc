#include "src/ops/optimizer/optimizer.h"

#include "tests/train/cuda/both.h"

namespace tally::train {
namespace {

StepState step_values(double clip) {
  StepState s{};
  s.learning_rate = 1e-2;
  s.bias_correction1 = 0.1;
  s.bias_correction2 = 0.001;
  s.weight_decay = 0.1;
  s.loss_scale = 4;
  s.clip = static_cast<float>(clip);
  return s;
}

struct Run {
  explicit Run(Both& b, int64_t n, const StepState& s) : both(b), count(n) {
    state = b.put({static_cast<int64_t>(sizeof(StepState) / 8)}, DType::f64, DType::f64, {});
    b.cpu->copy(state.cpu.data, &s, sizeof s);
    b.gpu->copy(state.gpu.data, &s, sizeof s);
    b.cpu->synchronize();
    b.gpu->synchronize();
    gradients = b.sum({n});
    master = b.sum({n});
    m = b.sum({n}, 0.1);
    v = b.positive({n});
    weights = master;
    if (b.kind.type != b.kind.gradient()) weights = b.output({n});
  }
  void norm() const {
    const Tensor cw = both.cpu_scratch(norm_workspace(*both.cpu, count));
    const Tensor gw = both.scratch(norm_workspace(*both.gpu, count));
    gradient_norm(*both.cpu, gradients.cpu, state.cpu.as<StepState>(), cw);
    gradient_norm(*both.gpu, gradients.gpu, state.gpu.as<StepState>(), gw);
  }
  void step(int64_t decayed, bool zero) const {
    adamw_step(*both.cpu, AdamW{}, state.cpu.as<StepState>(), decayed, gradients.cpu, master.cpu,
               m.cpu, v.cpu, weights.cpu, zero);
    adamw_step(*both.gpu, AdamW{}, state.gpu.as<StepState>(), decayed, gradients.gpu, master.gpu,
               m.gpu, v.gpu, weights.gpu, zero);
  }
  StepState gpu_state() const {
    StepState s;
    both.gpu->copy(&s, state.gpu.data, sizeof s);
    both.gpu->synchronize();
    return s;
  }
  Both& both;
  int64_t count;
  Pair state, gradients, master, m, v, weights;
};

TEST_CASE("cuda: gradient_norm and adamw_step" * NEEDS_GPU) {
  for (const Kind& kind : types()) {
    for (const int64_t n : {int64_t{5}, int64_t{128 * 1024 + 3}}) {
      for (const double clip : {0.0, 0.5, 1e9}) {
        Both b(kind);
        Run run(b, n, step_values(clip));
        run.norm();
        const StepState got = run.gpu_state(), *want = run.state.cpu.as<StepState>();
        CHECK(got.grad_norm == doctest::Approx(want->grad_norm).epsilon(1e-5));
        CHECK(got.clip_factor == doctest::Approx(want->clip_factor).epsilon(1e-5));
        CHECK(got.found_inf == 0);
        const double tolerance = kind.type == DType::f64 ? 1e-10 : 1e-5;
        for (const bool zero : {false, true}) {
          run.step(n / 2, zero);
          CHECK_CLOSE(b, run.master, tolerance);
          CHECK_CLOSE(b, run.m, tolerance);
          CHECK_CLOSE(b, run.v, tolerance);
          CHECK_CLOSE(b, run.weights, kind.tolerance);
        }
        for (const double g : Both::read(run.gradients.gpu, *b.gpu)) REQUIRE(g == 0);
      }
    }
  }
}

TEST_CASE("cuda: add_gradients" * NEEDS_GPU) {
  for (const Kind& kind : types()) {
    for (const int64_t n : {int64_t{5}, int64_t{128 * 1024 + 3}}) {
      Both b(kind);
      const Pair from = b.sum({n}), to = b.sum({n});
      add_gradients(*b.cpu, from.cpu, to.cpu);
      add_gradients(*b.gpu, from.gpu, to.gpu);
      CHECK_CLOSE(b, to, kind.type == DType::f64 ? 1e-15 : 1e-7);
    }
  }
}

TEST_CASE("cuda: a gradient that is not finite skips the update" * NEEDS_GPU) {
  for (const Kind& kind : types()) {
    for (const double bad : {std::nan(""), std::numeric_limits<double>::infinity()}) {
      Both b(kind);
      Run run(b, 1001, step_values(1.0));
      std::vector<double> g = Both::read(run.gradients.gpu, *b.gpu);
      g[777] = bad;
      Both::write(run.gradients.gpu, *b.gpu, g);
      Both::write(run.gradients.cpu, *b.cpu, g);
      const std::vector<double> before = Both::read(run.master.gpu, *b.gpu);
      run.norm();
      CHECK(run.gpu_state().found_inf == 1);
      run.step(1001, true);
      CHECK(Both::read(run.master.gpu, *b.gpu) == before);
      for (const double x : Both::read(run.gradients.gpu, *b.gpu)) REQUIRE(x == 0);
      adamw_step(*b.gpu, AdamW{}, run.state.gpu.as<StepState>(), 1000,
                 run.gradients.gpu.rows(0, 1000), run.master.gpu.rows(0, 1000),
                 run.m.gpu.rows(0, 1000), run.v.gpu.rows(0, 1000), run.weights.gpu.rows(0, 1000),
                 false, 2);
      CHECK(Both::read(run.master.gpu, *b.gpu) == before);
    }
  }
}

TEST_CASE("cuda: adamw_step on few SMs leaves the same bits" * NEEDS_GPU) {
  for (const Kind& kind : types()) {
    for (const int64_t n : {int64_t{128}, int64_t{100'000}, int64_t{1'000'000}}) {
      Both b(kind);
      const Run r(b, n, step_values(1));
      r.norm();
      const std::vector<Pair> changed{r.master, r.m, r.v, r.weights};
      std::vector<Tensor> before;
      for (const Pair& p : changed) before.push_back(b.copy_of(p.gpu));
      std::vector<std::vector<double>> expected;
      for (const int sms : {0, 1, 2, 6}) {  // 0: all
        for (size_t i = 0; i < changed.size(); ++i) b.restore(changed[i], before[i]);
        adamw_step(*b.gpu, AdamW{}, r.state.gpu.as<StepState>(), n / 2, r.gradients.gpu,
                   r.master.gpu, r.m.gpu, r.v.gpu, r.weights.gpu, false, sms);
        for (size_t i = 0; i < changed.size(); ++i) {
          const std::vector<double> got = Both::read(changed[i].gpu, *b.gpu);
          INFO(std::string(kind.name), " ", n, " elements on ", sms);
          if (sms == 0) {
            expected.push_back(got);
          } else {
            REQUIRE(got == expected[i]);
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace tally::train
