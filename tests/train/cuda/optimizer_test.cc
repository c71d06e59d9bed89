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
    gradient_norm(*both.cpu, gradients.cpu, state.cpu.as<StepState>());
    gradient_norm(*both.gpu, gradients.gpu, state.gpu.as<StepState>());
  }
  void step(int64_t decayed, bool zero) const {
    adamw_step(*both.cpu, AdamW{}, state.cpu.as<StepState>(),
               {Out(gradients.cpu), Out(master.cpu), Out(m.cpu), Out(v.cpu), Out(weights.cpu),
                decayed, zero},
               0);
    adamw_step(*both.gpu, AdamW{}, state.gpu.as<StepState>(),
               {Out(gradients.gpu), Out(master.gpu), Out(m.gpu), Out(v.gpu), Out(weights.gpu),
                decayed, zero},
               0);
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

TEST_CASE("cuda: sgd_step" * NEEDS_GPU) {
  for (const Kind& kind : types()) {
    for (const int64_t n : {int64_t{5}, int64_t{128 * 1024 + 3}}) {
      Both b(kind);
      const Run r(b, n, step_values(0.5));
      r.norm();
      for (const bool zero : {false, true}) {
        sgd_step(*b.cpu, 0.9, r.state.cpu.as<StepState>(),
                 {Out(r.gradients.cpu),
                  Out(r.master.cpu),
                  Out(r.m.cpu),
                  {},
                  Out(r.weights.cpu),
                  n / 2,
                  zero});
        sgd_step(*b.gpu, 0.9, r.state.gpu.as<StepState>(),
                 {Out(r.gradients.gpu),
                  Out(r.master.gpu),
                  Out(r.m.gpu),
                  {},
                  Out(r.weights.gpu),
                  n / 2,
                  zero});
        const double tolerance = kind.type == DType::f64 ? 1e-10 : 1e-5;
        CHECK_CLOSE(b, r.master, tolerance);
        CHECK_CLOSE(b, r.m, tolerance);
        CHECK_CLOSE(b, r.weights, kind.tolerance);
      }
      for (const double g : Both::read(r.gradients.gpu, *b.gpu)) REQUIRE(g == 0);
    }
  }
}

// Two parameters with weight decay, the first in three pieces, and one without, which begins where no
// vector is aligned, as matrices within a fused parameter may.
struct LambRun : Run {
  static constexpr int64_t first = 2 * lamb_piece_elements + 16, second = 109, third = 1003;
  static constexpr int64_t at_third = first + second;
  LambRun(Both& b, const StepState& s) : Run(b, at_third + third, s) {
    sums = b.put({5, 2}, DType::f64, DType::f64, {});
    norms = b.put({2, 2}, DType::f64, DType::f64, {});
    rows = b.put({3}, DType::f64, DType::f64, {});
    constexpr auto words = static_cast<int64_t>(5 * sizeof(LambPiece) / 8);
    pieces = b.put({words}, DType::f64, DType::f64, {});
    cpu = tables(*b.cpu, pieces.cpu, rows.cpu, gradients.cpu);
    gpu = tables(*b.gpu.stream, pieces.gpu, rows.gpu, gradients.gpu);
    cpu.piece_sums = sums.cpu;
    gpu.piece_sums = sums.gpu;
    cpu.norms = norms.cpu;
    gpu.norms = norms.gpu;
  }
  static LambTables tables(Stream& s, const Tensor& pieces, const Tensor& rows, const Tensor& g) {
    std::vector<LambPiece> list;
    const auto add = [&](int64_t at, int64_t count, int norm) {
      list.push_back({g.rows(at, count).data, at, at, static_cast<int32_t>(count), norm});
    };
    add(0, lamb_piece_elements, 0);
    add(lamb_piece_elements, lamb_piece_elements, 0);
    add(2 * lamb_piece_elements, 16, 0);
    add(first, second, 1);
    add(at_third, third, -1);
    const std::vector<int64_t> begins{0, 3, 4};
    s.copy(pieces.data, list.data(), list.size() * sizeof(LambPiece));
    s.copy(rows.data, begins.data(), begins.size() * sizeof(int64_t));
    s.synchronize();
    LambTables t;
    t.pieces = pieces.as<LambPiece>();
    t.first_piece = rows.as<int64_t>();
    t.count = static_cast<int64_t>(list.size());
    return t;
  }
  void lamb(bool zero) const {
    const LambBuffers on_cpu{Out(master.cpu), Out(m.cpu), Out(v.cpu), Out(weights.cpu)};
    const LambBuffers on_gpu{Out(master.gpu), Out(m.gpu), Out(v.gpu), Out(weights.gpu)};
    lamb_direction(*both.cpu, AdamW{}, state.cpu.as<StepState>(), on_cpu, cpu);
    lamb_direction(*both.gpu, AdamW{}, state.gpu.as<StepState>(), on_gpu, gpu);
    lamb_step(*both.cpu, state.cpu.as<StepState>(), on_cpu, cpu, zero);
    lamb_step(*both.gpu, state.gpu.as<StepState>(), on_gpu, gpu, zero);
  }
  Pair sums, norms, rows, pieces;
  LambTables cpu, gpu;
};

TEST_CASE("cuda: lamb_direction and lamb_step" * NEEDS_GPU) {
  for (const Kind& kind : types()) {
    Both b(kind);
    const LambRun r(b, step_values(0.5));
    r.norm();
    const double tolerance = kind.type == DType::f64 ? 1e-10 : 1e-5;
    for (const bool zero : {false, true}) {
      r.lamb(zero);
      CHECK_CLOSE(b, r.norms, tolerance);
      CHECK_CLOSE(b, r.master, tolerance);
      CHECK_CLOSE(b, r.m, tolerance);
      CHECK_CLOSE(b, r.v, tolerance);
      CHECK_CLOSE(b, r.weights, kind.tolerance);
    }
    for (const double g : Both::read(r.gradients.gpu, *b.gpu)) REQUIRE(g == 0);
  }
}

TEST_CASE("cuda: add_gradients" * NEEDS_GPU) {
  for (const Kind& kind : types()) {
    for (const int64_t n : {int64_t{5}, int64_t{128 * 1024 + 3}}) {
      Both b(kind);
      const Pair from = b.sum({n}), to = b.sum({n});
      add_gradients(*b.cpu, from.cpu, Out(to.cpu));
      add_gradients(*b.gpu, from.gpu, Out(to.gpu));
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
      adamw_step(*b.gpu, AdamW{}, run.state.gpu.as<StepState>(),
                 {Out(run.gradients.gpu.rows(0, 1000)), Out(run.master.gpu.rows(0, 1000)),
                  Out(run.m.gpu.rows(0, 1000)), Out(run.v.gpu.rows(0, 1000)),
                  Out(run.weights.gpu.rows(0, 1000)), 1000},
                 2);
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
        adamw_step(*b.gpu, AdamW{}, r.state.gpu.as<StepState>(),
                   {Out(r.gradients.gpu), Out(r.master.gpu), Out(r.m.gpu), Out(r.v.gpu),
                    Out(r.weights.gpu), n / 2},
                   sms);
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
