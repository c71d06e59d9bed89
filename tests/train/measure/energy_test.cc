// The energy of a run's steps, from samples of a GPU's counter and sensor.
#include "src/measure/energy.h"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <nlohmann/json.hpp>

#include "src/measure/record.h"
#include "src/measure/record_energy.h"

namespace tally::train {
namespace {

// The counter runs with `watts` from 1000 J at time 0.
PowerSample at(double seconds, double joules, double watts, uint64_t throttle = 0) {
  PowerSample sample;
  sample.at = seconds;
  sample.reading.joules = joules;
  sample.reading.watts = watts;
  sample.reading.throttle = throttle;
  return sample;
}

Step step(int64_t iteration, double seconds) {
  Step s;
  s.iteration = iteration;
  s.seconds = seconds;
  s.samples = 1;
  return s;
}

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Draws a constant power, and its counter agrees.
class ConstantGpu final : public GpuDevices {
 public:
  ConstantGpu(double watts, bool counter, std::atomic<int>* reads)
      : watts_(watts), counter_(counter), reads_(reads) {}
  size_t count() const override { return 1; }
  std::optional<size_t> at_pci(const std::string&) const override { return 0; }
  std::string name(size_t) const override { return "constant"; }
  GpuSettings settings(size_t) const override {
    GpuSettings s;
    s.limit_watts = 700;
    s.max_sm_mhz = 1980;
    return s;
  }
  std::string uuid(size_t) const override { return "GPU-1"; }
  // Each look finds two more of the first; somebody resets the second, and the third is not counted.
  std::vector<GpuCounter> counters(size_t) const override {
    const uint64_t looks = looks_++;
    return {{"corrected", 40 + 2 * looks}, {"reset", 9 - looks}, {"none", {}}};
  }
  tally::GpuWork work(size_t) const override { return {}; }
  std::vector<int> processes(size_t) const override { return {}; }
  std::string driver() const override { return ""; }
  std::string cuda() const override { return ""; }
  GpuReading read(size_t) const override {
    ++*reads_;
    GpuReading r;
    if (counter_) r.joules = watts_ * seconds_now();
    r.watts = watts_;
    r.throttle = 4;
    r.sm_mhz = 1500;
    r.celsius = 60 + static_cast<unsigned>(*reads_ % 2);
    return r;
  }

 private:
  double watts_;
  bool counter_;
  std::atomic<int>* reads_;
  mutable uint64_t looks_ = 0;
};

}  // namespace

TEST_CASE("energy: between samples, power is linear in time") {
  // 100 W for 10 s, then 300 W.
  const std::vector<PowerSample> samples{at(0, 1000, 100), at(10, 2000, 100, 4), at(10, 2000, 300),
                                         at(20, 5000, 300), at(30, 8000, 300, 0x20)};
  SUBCASE("the counter's difference and the sensor's integral") {
    const SpanEnergy e = energy_in(samples, {{5, 15}});
    CHECK(e.seconds == doctest::Approx(10));
    CHECK(*e.joules == doctest::Approx(500 + 1500));
    CHECK(*e.sampled_joules == doctest::Approx(500 + 1500));
    CHECK(e.throttle == 4);
  }
  SUBCASE("work between spans is left out") {
    const SpanEnergy e = energy_in(samples, {{1, 2}, {12, 14}});
    CHECK(e.seconds == doctest::Approx(3));
    CHECK(*e.joules == doctest::Approx(100 + 600));
    CHECK(*e.sampled_joules == doctest::Approx(100 + 600));
  }
  SUBCASE("samples that do not reach over the spans give no number") {
    CHECK_FALSE(energy_in(samples, {{-1, 2}}).joules);
    CHECK_FALSE(energy_in(samples, {{25, 31}}).joules);
    CHECK_FALSE(energy_in({}, {{1, 2}}).joules);
    CHECK_FALSE(energy_in(samples, {}).joules);
  }
  SUBCASE("a sample without a counter takes the counter's number, not the sensor's") {
    std::vector<PowerSample> gap = samples;
    gap[3].reading.joules.reset();
    const SpanEnergy e = energy_in(gap, {{5, 25}});
    CHECK_FALSE(e.joules);
    CHECK(*e.sampled_joules == doctest::Approx(500 + 4500));
  }
}

TEST_CASE("energy: the spans of steps end where their results were waited for") {
  const std::vector<Step> steps{step(1, 40), step(2, 1), step(3, 2), step(4, 3), step(5, 4)};
  // An evaluation of 100 s lies between step 3 and step 4.
  const std::vector<StepsDone> done{{3, 50}, {5, 157}};
  SUBCASE("the warm-up is left out") {
    const auto spans = spans_of(steps, 1, done);
    REQUIRE(spans.size() == 2);
    CHECK(spans[0].from == doctest::Approx(47));
    CHECK(spans[0].to == doctest::Approx(50));
    CHECK(spans[1].from == doctest::Approx(150));
    CHECK(spans[1].to == doctest::Approx(157));
  }
  SUBCASE("a group of warm-up steps gives none") {
    const auto spans = spans_of(steps, 3, done);
    REQUIRE(spans.size() == 1);
    CHECK(spans[0].from == doctest::Approx(150));
  }
  SUBCASE("no moment counts twice") {
    const auto spans = spans_of(steps, 1, {{3, 50}, {5, 56}});
    REQUIRE(spans.size() == 2);
    CHECK(spans[1].from == doctest::Approx(50));
  }
}

TEST_CASE("energy: a thread reads the GPU until the end") {
  std::atomic<int> reads{0};
  bool counter = true;
  SUBCASE("with a counter") {}
  SUBCASE("without one") {
    counter = false;
  }
  EnergySampler sampler(std::make_unique<ConstantGpu>(250, counter, &reads), 0, 0.002);
  const double begin = seconds_now();
  while (reads < 50 || seconds_now() < begin + 1.1) std::this_thread::yield();
  const double took = seconds_now() - begin;
  sampler.steps_done(2);
  const GpuEnergyUse use = sampler.finish({step(1, 0.01), step(2, took)}, 1);
  CHECK(use.not_available.empty());
  CHECK(use.energy.seconds == doctest::Approx(took));
  CHECK(use.energy.joules.has_value() == counter);
  if (counter) CHECK(*use.energy.joules == doctest::Approx(250 * took).epsilon(0.01));
  CHECK(*use.energy.sampled_joules == doctest::Approx(250 * took).epsilon(0.001));
  CHECK(use.limit_watts == 700);
  CHECK(use.energy.throttle == 4);
  CHECK(use.energy.sm_mhz == 1500);
  CHECK(use.energy.celsius == 61);
  CHECK(use.max_sm_mhz == 1980);
  CHECK(use.uuid == "GPU-1");
  REQUIRE(use.faults.size() == 3);
  CHECK(use.faults[0].count == 42);
  CHECK(use.faults[0].in_run == 2);
  CHECK(use.faults[1].count == 8);
  CHECK_FALSE(use.faults[1].in_run);
  CHECK_FALSE(use.faults[2].count);
}

TEST_CASE("energy: too few steps give no number and the reason") {
  std::atomic<int> reads{0};
  EnergySampler sampler(std::make_unique<ConstantGpu>(250, true, &reads), 0, 0.002);
  sampler.steps_done(2);
  const GpuEnergyUse use = sampler.finish({step(1, 0.0001), step(2, 0.0001)}, 1);
  CHECK_FALSE(use.energy.joules);
  CHECK(use.not_available ==
        "the steps after the warm-up took 0.0001 s: take more of them, for 1 s or longer");
}

namespace {

// Two steps of half a second after one of warm-up, 1,000 tokens each.
Record record_of(const std::vector<GpuEnergyUse>& energy) {
  Record r;
  r.device = Device{DeviceKind::cuda, 0};
  r.config.sequence = 1000;
  r.config.global_batch = 1;
  r.config.model.layers = 1;
  r.steps = {step(1, 5), step(2, 0.5), step(3, 0.5)};
  r.energy = energy;
  return r;
}

GpuEnergyUse used(int rank, const char* gpu, double joules, double sampled, double seconds) {
  GpuEnergyUse use;
  use.rank = rank;
  use.host = "node";
  use.gpu = gpu;
  use.energy.seconds = seconds;
  use.energy.joules = joules;
  use.energy.sampled_joules = sampled;
  use.energy.throttle = 4;
  use.limit_watts = 700;
  use.faults = {{"ecc_corrected", 3, 1}, {"nvlink_replay", {}, {}}};
  return use;
}

}  // namespace

TEST_CASE("energy: the record's totals") {
  SUBCASE("one GPU: 500 W and 2,000 tokens/s") {
    const Record r = record_of({used(0, "a", 10000, 10100, 20)});
    const auto json = energy_json(r);
    CHECK(json["joules"] == 10000.0);
    CHECK(json["mean_watts"] == 500.0);
    CHECK(json["tokens_per_watt_hour"].get<double>() == doctest::Approx(2000 * 3600 / 500.0));
    CHECK(json["watt_hours_to_report"].get<double>() == doctest::Approx(20e6 / 14400));
    CHECK(json["not_available"].is_null());
    CHECK(json["gpus"][0]["throttling"] == "power cap");
    CHECK(json["gpus"][0]["celsius"].is_null());
    CHECK(json["gpus"][0]["faults"].dump() == R"({"ecc_corrected":3,"nvlink_replay":null})");
    CHECK(json["gpus"][0]["faults_in_run"].dump() == R"({"ecc_corrected":1,"nvlink_replay":null})");
    CHECK(energy_summary(r) ==
          "energy after the warm-up: 10000.0 J in 20.00 s, 500.0 W, 1.44e+04 tokens/Wh, limit 700 "
          "W, throttling: power cap\n");
  }
  SUBCASE("GPUs add up, and a shared one counts once") {
    const Record r = record_of({used(0, "a", 10000, 10000, 20), used(1, "b", 8000, 8000, 20),
                                used(2, "b", 8000, 8000, 20)});
    CHECK(energy_json(r)["joules"] == 18000.0);
    CHECK(energy_json(r)["mean_watts"] == 900.0);
  }
  SUBCASE("a sensor that disagrees is told") {
    const Record r = record_of({used(0, "a", 10000, 12000, 20)});
    CHECK(energy_summary(r).find("warning: the counter gives 10000.0 J, sampled power 12000.0 J") !=
          std::string::npos);
  }
  SUBCASE("one rank without a number: none for the run, and the reason") {
    GpuEnergyUse missing;
    missing.rank = 1;
    missing.not_available = "NVML does not list this GPU";
    const Record r = record_of({used(0, "a", 10000, 10000, 20), missing});
    CHECK(energy_json(r)["joules"].is_null());
    CHECK(energy_json(r)["not_available"] == "rank 1: NVML does not list this GPU");
    CHECK(energy_summary(r) == "energy: not available: rank 1: NVML does not list this GPU\n");
  }
  SUBCASE("without an end, or on a CPU") {
    CHECK(energy_json(record_of({}))["not_available"] == "the run did not come to its end");
    Record r = record_of({});
    r.device = Device{};
    CHECK(energy_summary(r).empty());
  }
}

}  // namespace tally::train
