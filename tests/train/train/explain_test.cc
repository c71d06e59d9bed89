// --explain with a profiler that makes up what it saw.
#include "src/train/step/explain.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "src/device/step_state.h"
#include "src/nn/gemm_calls.h"
#include "src/train/run/failures.h"
#include "tests/train/train/loop_fixture.h"

using namespace tally::train;

namespace {

constexpr int64_t ms = 1'000'000;

// In each step that is traced a GEMM of 6 ms and a gap of 4 ms. Of GEMMs alone it sees 5 ms a call.
class FakeProfiler final : public DeviceProfiler {
 public:
  FakeProfiler(const FakeStage& stage, int64_t missing_ends)
      : stage_(stage), missing_(missing_ends) {}
  void start() override { calls_ = stage_.calls, gemms_ = stage_.gemms; }
  std::vector<DeviceActivity> stop(int64_t* lost) override {
    *lost = missing_;
    const int64_t steps = (stage_.calls - calls_) / 3;
    starts += fmt::format("{} ", steps);
    std::vector<DeviceActivity> all;
    for (int64_t k = 0; k < steps; ++k) {
      add("nvjet_hsh_128x256", 10 * k, 10 * k + 6, &all);
      if (k < missing_) continue;
      add("[copy to host]", 10 * k + 10, 10 * k + 10, &all);
      all.back().bytes = sizeof(StepState);
      all.back().grid.clear();
    }
    for (int64_t k = 0; k < stage_.gemms - gemms_; ++k)
      add("nvjet_hsh_128x256", 5 * k, 5 * k + 5, &all);
    return all;
  }
  std::string starts;  // how many steps each trace has

 private:
  static void add(const char* name, int64_t from, int64_t to, std::vector<DeviceActivity>* all) {
    DeviceActivity a;
    a.name = name;
    a.start = from * ms;
    a.end = to * ms;
    a.grid = a.block = "1x1x1";
    all->push_back(a);
  }
  const FakeStage& stage_;
  const int64_t missing_;
  int64_t calls_ = 0, gemms_ = 0;
};

std::unique_ptr<Rendezvous> alone() {
  return Rendezvous::meet({}, [](const Failure&) {});
}

}  // namespace

TEST_CASE("--explain: steps are done again behind the measured ones, and change no result") {
  LoopFixture f;
  f.config.train_iterations = 20;
  f.config.train_samples = 120;
  f.config.optimizer.decay_samples = 120;
  f.run();
  const std::vector<Step> steps = f.record.steps;
  const auto lines = f.lines.size();
  Explanation found;
  std::string why, traces;
  int64_t missing = 0;
  SUBCASE("") {}
  SUBCASE("a trace without all ends of steps") {
    missing = 1;
  }
  f.after = [&](StepLoop& loop) {
    const int64_t calls = f.model->calls;
    const auto meeting = alone();
    FakeProfiler profiler(*f.model, missing);
    found = explain({loop, profiler, *f.stream, *meeting}, &why);
    CHECK(!f.model->gemm_hook);
    traces = profiler.starts;
    CHECK(f.model->calls - calls == 3 * explain_steps);
    // It begins 15 steps before the end.
    CHECK(f.model->first_ids.at(static_cast<size_t>(calls)) == 30);
  };
  f.run();
  REQUIRE(f.record.steps.size() == 20);
  CHECK(f.lines.size() == lines);
  for (size_t k = 0; k < 20; ++k) CHECK(f.record.steps[k].loss == steps[k].loss);
  CHECK(traces == "9 0 0 ");  // the steps, then two GEMMs
  if (missing > 0) {
    CHECK(found.empty());
    CHECK(why.find("do not show where its steps end (1 of them") != std::string::npos);
    return;
  }
  CHECK(why.empty());
  REQUIRE(found.size() == 1);
  const RankExplanation& e = found.front();
  CHECK(e.steps == explain_traced);
  CHECK(e.seconds(StepBar::gemm) == doctest::Approx(6e-3));
  CHECK(e.seconds(StepBar::gap) == doctest::Approx(4e-3));
  CHECK(e.step_seconds() == doctest::Approx(10e-3));
  // Of the fake's two GEMMs one is called twice in a micro batch.
  REQUIRE(e.gemms.size() == 2);
  CHECK(e.gemms[0].call == "once");
  CHECK(e.gemms[0].calls == 3);
  CHECK(e.gemms[1].call == "twice");
  CHECK(e.gemms[1].calls == 6);
  CHECK(e.gemms[0].seconds == doctest::Approx(5e-3));
  CHECK(e.gemm_seconds_alone() == doctest::Approx(9 * 5e-3));
}

TEST_CASE("--explain on a CPU says what to do instead") {
  const auto stream = make_stream({DeviceKind::cpu, 0});
  try {
    open_explain_profiler(*stream);
    FAIL("it was opened");
  } catch (const InputError& e) {
    CHECK(
        std::string(e.what()) ==
        "--explain: reads what a GPU did from CUPTI, and this run is on the CPU: leave it out, or "
        "time the phases of a step with --time-phases");
  }
}

TEST_CASE("GEMMs are told of by operation and shapes, and can be called again") {
  const auto stream = make_stream({DeviceKind::cpu, 0});
  std::vector<float> x(6, 1), w(12, 2), y(8, 0);
  const Tensor tx(x.data(), DType::f32, {2, 3}), tw(w.data(), DType::f32, {4, 3}),
      ty(y.data(), DType::f32, {2, 4});
  LayerContext c{.compute = Compute(*stream)};
  call_gemm(linear_forward, c, tx, {tw, {}}, Out(ty), {});  // nobody listens
  CHECK(y[0] == 6);
  std::vector<GemmCall> heard;
  c.gemm_hook = [&](const GemmCall& call) { heard.push_back(call); };
  call_gemm(linear_forward, c, tx, {tw, {}}, Out(ty), {});
  call_gemm(linear_backward_weight, c, ty, tx, {Out(tw), {}, true});
  REQUIRE(heard.size() == 2);
  CHECK(heard[0].name == "linear_forward 2x3:float32 4x3:float32 2x4:float32");
  CHECK(heard[1].name == "linear_backward_weight 2x4:float32 2x3:float32 4x3:float32 added");
  std::fill(w.begin(), w.end(), 1);
  heard[0].again();
  CHECK(y[0] == 3);
}
