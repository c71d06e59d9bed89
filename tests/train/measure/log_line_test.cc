#include "src/measure/log_line.h"

#include <doctest/doctest.h>

#include <cmath>
#include <regex>
#include <string>

#include "src/measure/flops.h"
#include "src/measure/statistics.h"

using namespace tally::train;

namespace {

// The five lines that the JUPITER NLP benchmark publishes for its 175B run (description,
// "Verification"), without the launcher's prefix.
const char* const published[] = {
    " iteration       10/ 3125000 | consumed samples:          960 | elapsed time per iteration "
    "(s): 7.2310 | "
    "learning rate: 4.438E-07 | global batch size:    96 | lm loss: 1.010967E+01 | loss scale: "
    "4096.0 | grad "
    "norm: 178.553 | number of skipped iterations:   0 | number of nan iterations:   0 | samples "
    "per second: "
    "13.276 | TFLOPs: 101.54 |",
    " iteration       20/ 3125000 | consumed samples:         1920 | elapsed time per iteration "
    "(s): 5.3551 | "
    "learning rate: 8.876E-07 | global batch size:    96 | lm loss: 8.861832E+00 | loss scale: "
    "4096.0 | grad "
    "norm: 46.241 | number of skipped iterations:   0 | number of nan iterations:   0 | samples "
    "per second: "
    "17.927 | TFLOPs: 137.10 |",
    " iteration       30/ 3125000 | consumed samples:         2880 | elapsed time per iteration "
    "(s): 5.6192 | "
    "learning rate: 1.331E-06 | global batch size:    96 | lm loss: 8.532865E+00 | loss scale: "
    "4096.0 | grad "
    "norm: 8.121 | number of skipped iterations:   0 | number of nan iterations:   0 | samples per "
    "second: "
    "17.084 | TFLOPs: 130.66 |",
    " iteration       40/ 3125000 | consumed samples:         3840 | elapsed time per iteration "
    "(s): 5.3291 | "
    "learning rate: 1.775E-06 | global batch size:    96 | lm loss: 8.442033E+00 | loss scale: "
    "4096.0 | grad "
    "norm: 207.531 | number of skipped iterations:   0 | number of nan iterations:   0 | samples "
    "per second: "
    "18.014 | TFLOPs: 137.77 |",
    " iteration       50/ 3125000 | consumed samples:         4800 | elapsed time per iteration "
    "(s): 5.3247 | "
    "learning rate: 2.219E-06 | global batch size:    96 | lm loss: 8.110270E+00 | loss scale: "
    "4096.0 | grad "
    "norm: 5.662 | number of skipped iterations:   0 | number of nan iterations:   0 | samples per "
    "second: "
    "18.029 | TFLOPs: 137.89 |"};

double field(const std::string& line, const std::string& name) {
  std::smatch found;
  REQUIRE(std::regex_search(line, found, std::regex(name + R"(\s*([-+0-9.E]+))")));
  return std::stod(found[1]);
}

LogLine numbers_of(const std::string& line) {
  LogLine l;
  l.iteration = static_cast<int64_t>(field(line, "iteration"));
  l.iterations = static_cast<int64_t>(field(line, "/"));
  l.consumed_samples = static_cast<int64_t>(field(line, "consumed samples:"));
  l.seconds_per_iteration = field(line, R"(per iteration \(s\):)");
  l.learning_rate = field(line, "learning rate:");
  l.global_batch = static_cast<int64_t>(field(line, "global batch size:"));
  l.loss = field(line, "lm loss:");
  l.loss_scale = field(line, "loss scale:");
  l.grad_norm = field(line, "grad norm:");
  l.samples_per_second = field(line, "samples per second:");
  l.tflops = field(line, "TFLOPs:");
  return l;
}

}  // namespace

TEST_CASE("the benchmark's published lines come back byte for byte from their numbers") {
  for (const char* line : published) CHECK(format_log_line(numbers_of(line)) == line);
}

TEST_CASE("its TFLOPs and samples per second follow from its times by our formulas") {
  Config c;
  c.model.layers = 96;
  c.model.hidden = 12288;
  c.model.padded_vocabulary = 51200;
  c.sequence = 2048;
  c.global_batch = 96;
  c.recompute = Recompute::selective;
  for (const char* text : published) {
    const LogLine l = numbers_of(text);
    // Times are printed to 1e-4 s and rates to 0.01, so the two agree to half a last digit of each.
    CHECK(megatron_flops_per_iteration(c) / (l.seconds_per_iteration * 384e12) ==
          doctest::Approx(l.tflops).epsilon(1e-4));
    CHECK(96 / l.seconds_per_iteration == doctest::Approx(l.samples_per_second).epsilon(1e-4));
  }
}

TEST_CASE(
    "tokens/s is Megatron's rule: the benchmark's five lines give its arithmetic's 34,063.43") {
  std::vector<Interval> intervals;
  for (const char* text : published) {
    const LogLine l = numbers_of(text);
    intervals.push_back({l.iteration, 10, l.seconds_per_iteration});
  }
  const Throughput t = throughput(intervals, {}, 96, 2048);
  CHECK(t.tokens_per_second == doctest::Approx(34063.43).epsilon(1e-7));
  CHECK(20e6 / t.tokens_per_second == doctest::Approx(587.14).epsilon(1e-5));
}

TEST_CASE("steady steps: not the first ten, of a short run not the first half") {
  const auto run = [](int64_t count, int64_t before) {
    std::vector<Step> steps(static_cast<size_t>(count));
    for (size_t i = 0; i < steps.size(); ++i) {
      steps[i].iteration = before + static_cast<int64_t>(i) + 1;
      steps[i].seconds = i < 10 ? 5 : 0.25;
    }
    return throughput({}, steps, 10, 10);
  };
  CHECK(run(45, 0).steady_from == 11);
  CHECK(run(45, 0).seconds_per_iteration_steady == doctest::Approx(0.25));
  CHECK(run(45, 0).tokens_per_second_steady == doctest::Approx(400));
  CHECK(run(45, 0).steady.seconds == doctest::Approx(35 * 0.25));
  CHECK(run(45, 0).steady.steps == 35);
  CHECK(run(45, 0).all.seconds == doctest::Approx(10 * 5 + 35 * 0.25));
  CHECK(run(45, 0).logged.steps == 45);  // there is no log line
  CHECK(run(45, 0).seconds_per_iteration == doctest::Approx((10 * 5 + 35 * 0.25) / 45));
  CHECK(run(45, 100).steady_from == 111);  // resumed
  CHECK(run(12, 0).steady_from == 7);
  CHECK(run(12, 0).seconds_per_iteration_steady == doctest::Approx((4 * 5 + 2 * 0.25) / 6));
  CHECK(run(1, 0).steady_from == 1);
  CHECK(run(1, 0).tokens_per_second_steady == doctest::Approx(20));
}

TEST_CASE("a rate of nothing is not a number") {
  // No step at all, and a log line without steps behind it.
  for (const std::vector<Interval>& intervals : {std::vector<Interval>(), {{1, 1, 0.0}}}) {
    const Throughput t = throughput(intervals, {}, 10, 10);
    CHECK_FALSE(t.steady_from.has_value());
    CHECK(t.steady.steps == 0);
    CHECK(t.all.steps == 0);
    for (const double rate :
         {t.tokens_per_second, t.tokens_per_second_median, t.tokens_per_second_steady,
          t.seconds_per_iteration_median, t.seconds_per_iteration_steady})
      CHECK(std::isnan(rate));
    CHECK(std::isnan(t.seconds_per_iteration) == intervals.empty());
  }
}

// The strings come from the expressions of training_log() in Megatron-LM's
// megatron/training/training.py, commit 001b00c2, run by Python with these numbers.
TEST_CASE("--log-format megatron: today's line, byte for byte") {
  const std::string time = "2025-11-24 05:29:58.123456";
  LogLine l = numbers_of(published[0]);
  l.throughput = 101.54;
  CHECK(
      format_megatron_log_line(l, true, time) ==
      " [2025-11-24 05:29:58.123456] iteration       10/ 3125000 | consumed samples:          960 "
      "| elapsed time per iteration (ms): 7231.0 | throughput per GPU (TFLOP/s/GPU): 101.5 | "
      "learning rate: 4.438000E-07 | global batch size:    96 | lm loss: 1.010967E+01 | loss "
      "scale: 4096.0 | grad norm: 178.553 | number of skipped iterations:   0 | number of nan "
      "iterations:   0 |");
  // All steps were skipped: no gradient norm, and a loss of 0 that is printed, unlike at the
  // benchmark's commit.
  l = {12345678, 12345678, 123456789012, 0.01234, 1e-4, 12345, 0, 4294967296.0, -1, 10, 3};
  CHECK(
      format_megatron_log_line(l, false, time) ==
      " [2025-11-24 05:29:58.123456] iteration 12345678/12345678 | consumed samples: 123456789012 "
      "| elapsed time per iteration (ms): 12.3 | learning rate: 1.000000E-04 | global batch size: "
      "12345 | lm loss: 0.000000E+00 | loss scale: 4294967296.0 | number of skipped iterations:  "
      "10 | number of nan iterations:   3 |");
  l.loss = std::nan("");
  CHECK(format_megatron_log_line(l, false, time).find("lm loss") == std::string::npos);
}

TEST_CASE("the time of a log line") {
  const std::regex stamp(R"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{6})");
  CHECK(std::regex_match(log_time(), stamp));
}

TEST_CASE("where the global batch grows, rates are of the samples that there were") {
  // A step of 2 samples in 1 s, then two of 4 in 2 s each: 2 samples/s throughout.
  std::vector<Step> steps(3);
  for (size_t i = 0; i < 3; ++i) {
    steps[i].iteration = static_cast<int64_t>(i) + 1;
    steps[i].samples = i == 0 ? 2 : 4;
    steps[i].seconds = i == 0 ? 1 : 2;
  }
  const Throughput t = throughput({{1, 1, 1.0, 2}, {3, 2, 2.0, 8}}, steps, 4, 100);
  CHECK(t.tokens_per_second == doctest::Approx(200));
  CHECK(t.tokens_per_second_median == doctest::Approx(200));
  CHECK(t.tokens_per_second_steady == doctest::Approx(200));
  CHECK(t.seconds_per_iteration == doctest::Approx(1.5));
  CHECK(t.seconds_per_iteration_median == doctest::Approx(2));
}

TEST_CASE("what Megatron leaves out is left out") {
  LogLine l = numbers_of(published[0]);
  l.loss = 0;
  l.grad_norm = -1;
  l.skipped = 10;
  const std::string line = format_log_line(l);
  CHECK(line.find("lm loss") == std::string::npos);
  CHECK(line.find("grad norm") == std::string::npos);
  CHECK(line.find("| loss scale: 4096.0 | number of skipped iterations:  10 |") !=
        std::string::npos);
}

TEST_CASE("perplexity: of a loss of 20 at most, and none of a loss that is not a number") {
  CHECK(perplexity(1) == std::exp(1.0));
  CHECK(perplexity(30) == std::exp(20.0));
  CHECK(std::isnan(perplexity(std::nan(""))));
}

TEST_CASE("the validation line, framed by one dash more than it has characters") {
  const std::string line =
      " validation loss at iteration 10 | lm loss value: 1.000000E+00 | lm loss PPL: 2.718282E+00 "
      "| ";
  const std::string rule(line.size() + 1, '-');
  CHECK(format_validation("iteration 10", 1.0) == rule + "\n" + line + "\n" + rule);
}

TEST_CASE("median") {
  CHECK(std::isnan(median({})));
  CHECK(median({3}) == 3);
  CHECK(median({5, 1, 3}) == 3);
  CHECK(median({4, 1, 3, 2}) == 2.5);
}
