// The waterfall of a step, from planted traces and replayed readings of NVML.
#include "src/measure/record_explanation.h"

#include <doctest/doctest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "src/measure/energy.h"
#include "src/measure/flops.h"

using namespace tally::train;
using nlohmann::json;

namespace {

constexpr int64_t ms = 1'000'000;  // nanoseconds

// Two traced steps of a rank, in ms of one step.
RankExplanation rank(const std::array<int64_t, step_bars>& of_step, double gemm_alone) {
  RankExplanation e;
  e.steps = 2;
  for (size_t k = 0; k < step_bars; ++k) e.times[k] = 2 * ms * of_step[k];
  e.gemms = {{"linear_forward 8x8bf16", 4, gemm_alone * 1e-3 / 4}};
  return e;
}

// 20 steps of 100 ms on an H200, and one of 120 ms.
Record sample() {
  Record r;
  r.config.model.layers = r.config.model.heads = 12;
  r.config.model.hidden = 768;
  r.config.model.ffn = 3072;
  r.config.model.vocabulary = 50257;
  r.config.model.padded_vocabulary = 50304;
  r.config.sequence = 1024;
  r.config.global_batch = 64;
  r.config.precision = Precision::bf16;
  r.device = {DeviceKind::cuda, 0};
  r.device_info.name = "NVIDIA H200";
  for (int64_t i = 1; i <= 30; ++i) {
    Step s;
    s.iteration = i;
    s.seconds = i == 25 ? 0.12 : 0.1;
    r.steps.push_back(s);
  }
  r.explanation = {rank({60, 15, 12, 1, 2, 3, 4, 2}, 55)};
  return r;
}

double bar(const Waterfall& w, const std::string& name) {
  for (const WaterfallBar& b : w.bars)
    if (b.name == name) return 1e3 * b.seconds;
  return std::nan("");
}

double sum_of(const Waterfall& w) {
  double sum = 0;
  for (const WaterfallBar& b : w.bars) sum += b.seconds;
  return sum;
}

// What NVML answered in a second of work: clock, and NVML's bits of what held it down.
GpuEnergyUse replayed(unsigned mhz, uint64_t throttle) {
  std::vector<PowerSample> samples;
  for (int k = 0; k <= 10; ++k) {
    PowerSample s;
    s.at = 0.1 * k;
    s.reading.joules = 70.0 * k;
    s.reading.watts = 700;
    s.reading.sm_mhz = mhz;
    s.reading.throttle = throttle;
    samples.push_back(s);
  }
  GpuEnergyUse use;
  use.energy = energy_in(samples, {{0.05, 0.95}});
  return use;
}

}  // namespace

TEST_CASE("the bars add up to the mean step, and each is what was measured") {
  const Record r = sample();
  const Waterfall w = waterfall_of(r);
  CHECK(w.seconds == doctest::Approx(0.101));
  CHECK(w.traced_seconds == doctest::Approx(0.099));
  CHECK(sum_of(w) == doctest::Approx(w.seconds));
  CHECK(bar(w, "other_kernels") == doctest::Approx(12));
  CHECK(bar(w, "interrupted") == doctest::Approx(1));
  CHECK(bar(w, "messages") == doctest::Approx(2));
  CHECK(bar(w, "bubble") == doctest::Approx(3));
  CHECK(bar(w, "slowest_rank") == doctest::Approx(4));
  CHECK(bar(w, "gaps") == doctest::Approx(2));
  CHECK(bar(w, "noise") == doctest::Approx(1));
  CHECK(bar(w, "remainder") == doctest::Approx(1));
  // The clock is not known: the GEMMs have it.
  CHECK(bar(w, "clocks") == 0);
  CHECK(bar(w, "gemm") == doctest::Approx(5));
  const double tokens = 64 * 1024, peak = 989.5e12;
  const double attention = 1e3 * tokens * attention_flops_per_token(r) / peak;
  const double all = 1e3 * tokens * flops_per_token(r) / peak;
  CHECK(bar(w, "peak") == doctest::Approx(all));
  CHECK(all / 100 == doctest::Approx(*model_flops_utilisation(r)));
  CHECK(bar(w, "attention") == doctest::Approx(15 - attention));
  CHECK(bar(w, "gemm_limit") == doctest::Approx(55 - (all - attention)));
}

TEST_CASE("a power cap lengthens the bar of clocks alone") {
  Record fast = sample(), capped = sample();
  fast.energy = {replayed(1830, 0)};
  // At three quarters of the clock the same kernels take a third longer.
  capped.energy = {replayed(1372, 4)};
  const double longer = 1830.0 / 1372;
  capped.explanation = {rank({60, 15, 12, 1, 2, 3, 4, 2}, 55 * longer)};
  for (const StepBar b : {StepBar::gemm, StepBar::attention}) {
    auto& time = capped.explanation[0].times[static_cast<size_t>(b)];
    time = std::llround(static_cast<double>(time) * longer);
  }
  const Waterfall a = waterfall_of(fast), b = waterfall_of(capped);
  CHECK(*b.mhz == doctest::Approx(1372));
  CHECK(*b.datasheet_mhz == 1830);
  CHECK(a.throttling == "none");
  CHECK(b.throttling == "power cap");
  CHECK(bar(a, "clocks") == doctest::Approx(0));
  CHECK(bar(b, "clocks") == doctest::Approx(75 * longer - 75));
  for (const char* same : {"peak", "gemm_limit", "gemm", "attention", "other_kernels", "gaps"})
    CHECK_MESSAGE(bar(a, same) == doctest::Approx(bar(b, same)), same);
  CHECK(sum_of(b) == doctest::Approx(b.seconds));
}

TEST_CASE("several ranks: means, and who computed longest") {
  Record r = sample();
  r.config.world_size = 2;
  r.explanation = {rank({60, 15, 12, 0, 2, 0, 10, 1}, 50), rank({70, 15, 12, 0, 2, 0, 0, 1}, 60)};
  r.explanation[1].lost = 3;
  const Waterfall w = waterfall_of(r);
  CHECK(w.slowest_rank == 1);
  CHECK(bar(w, "slowest_rank") == doctest::Approx(5));
  CHECK(bar(w, "gemm") == doctest::Approx(65 - 55));
  CHECK(sum_of(w) == doctest::Approx(w.seconds));
  const std::string text = explanation_summary(r);
  CHECK(text.find("means over 2 ranks; rank 1 computed longest") != std::string::npos);
  CHECK(text.find("CUPTI could not keep 3 records") != std::string::npos);
}

TEST_CASE("a GPU without a datasheet here: no bar for its rate, and the sum as before") {
  Record r = sample();
  r.device_info.name = "NVIDIA Unheard-of";
  r.energy = {replayed(1500, 0)};
  const Waterfall w = waterfall_of(r);
  CHECK(std::isnan(bar(w, "peak")));
  CHECK(bar(w, "clocks") == 0);
  CHECK(bar(w, "gemm_limit") == doctest::Approx(55));
  CHECK(bar(w, "attention") == doctest::Approx(15));
  CHECK(sum_of(w) == doctest::Approx(w.seconds));
}

TEST_CASE("the record and the last lines") {
  Record r = sample();
  r.energy = {replayed(1647, 4)};
  const json e = to_json(r)["results"]["explain"];
  CHECK(e["seconds"] == doctest::Approx(0.101));
  CHECK(e["traced_steps"] == 2);
  CHECK(e["clock_mhz"] == doctest::Approx(1647));
  CHECK(e["throttling"] == "power cap");
  CHECK(e["bars"][0]["name"] == "peak");
  CHECK(e["bars"].back()["name"] == "remainder");
  double shares = 0;
  for (const json& one : e["bars"]) shares += one["share"].get<double>();
  CHECK(shares == doctest::Approx(1));
  CHECK(e["ranks"][0]["seconds"]["gemm"] == doctest::Approx(0.06));
  CHECK(e["ranks"][0]["step_seconds"] == doctest::Approx(0.099));
  CHECK(e["gemms"][0]["call"] == "linear_forward 8x8bf16");
  CHECK(e["gemms"][0]["calls"] == 4);
  const std::string text = explanation_summary(r);
  CHECK(text.find("a step of 101.000 ms (mean of steps 11 to 30); 2 steps traced") !=
        std::string::npos);
  CHECK(
      text.find("clocks other than the datasheet's: 1647 MHz, 1830 there; throttling: power cap") !=
      std::string::npos);
  CHECK(text.find("      12.000   11.88 %  other kernels, copies and fills\n") !=
        std::string::npos);
  r.explanation.clear();
  CHECK(!to_json(r)["results"].contains("explain"));
  CHECK(explanation_summary(r).empty());
}
