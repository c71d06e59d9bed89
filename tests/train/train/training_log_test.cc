#include "src/train/step/training_log.h"

#include <doctest/doctest.h>

#include <chrono>
#include <cmath>
#include <limits>

using namespace tally::train;

namespace {

struct Fixture {
  Fixture() {
    config.sequence = 8;
    config.global_batch = 6;
    config.train_iterations = 40;
    config.epochs = 3;
    config.optimizer.lr = 0.01;
    config.optimizer.decay_style = "constant";
    config.optimizer.decay_samples = 240;
    log.start();
  }
  void add(double loss, bool skipped = false, int64_t samples = 6) {
    Step s;
    s.iteration = ++iteration;
    s.loss = loss;
    s.grad_norm = 1.5;
    s.skipped = skipped;
    s.samples = samples;
    log.add(s);
  }
  void add_unlabelled(bool skipped = false) {
    Step s;
    s.iteration = ++iteration;
    s.loss = std::nan("");
    s.unlabelled = true;
    s.skipped = skipped;
    s.samples = 6;
    log.add(s);
  }
  bool last_has(const std::string& part) const {
    return lines.back().find(part) != std::string::npos;
  }

  int64_t iteration = 0;
  Config config;
  Record record;
  std::vector<std::string> lines;
  TrainingLog log{config, [this](const std::string& line) { lines.push_back(line); }, &record};
};

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

TEST_CASE("an interval's line has the mean loss of the steps that were not skipped") {
  Fixture f;
  f.add(4);
  f.add(std::nan(""), true);
  f.add(100, true);  // the gradient was not finite, the loss was
  f.add(2);
  f.log.log_interval({4, 24, 24}, 512);
  REQUIRE(f.lines.size() == 1);
  CHECK(f.last_has(" iteration        4/      40 | consumed samples:           24 |"));
  CHECK(f.last_has(
      "| learning rate: 1.000E-02 | global batch size:     6 | lm loss: 3.000000E+00 |"));
  CHECK(f.last_has("| loss scale: 512.0 | grad norm: 1.500 |"));
  CHECK(f.last_has("number of skipped iterations:   2 | number of nan iterations:   1 |"));
  REQUIRE(f.record.intervals.size() == 1);
  CHECK(f.record.intervals[0].iteration == 4);
  CHECK(f.record.intervals[0].steps == 4);
  CHECK(f.record.intervals[0].samples == 24);
}

TEST_CASE("an interval knows nothing of the one before") {
  Fixture f;
  f.add(4, false, 2);
  f.add(std::nan(""), true, 4);
  f.log.log_interval({2, 6, 6}, 1);
  CHECK(f.last_has("| global batch size:     4 |"));
  CHECK_FALSE(f.last_has("grad norm"));  // of a step that was skipped
  CHECK(f.record.intervals[0].samples == 6);
  f.add(1);
  f.log.log_interval({3, 12, 12}, 1);
  CHECK(f.last_has("| lm loss: 1.000000E+00 |"));
  CHECK(f.last_has("number of skipped iterations:   0 | number of nan iterations:   0 |"));
  CHECK(f.record.intervals[1].steps == 1);
  CHECK(f.record.intervals[1].samples == 6);
  // Only skipped steps: no loss.
  f.add(std::numeric_limits<double>::infinity(), true);
  f.log.log_interval({4, 18, 18}, 1);
  CHECK_FALSE(f.last_has("lm loss"));
  CHECK(f.last_has("number of nan iterations:   1 |"));
  for (const LogFormat format : {LogFormat::jupiter, LogFormat::megatron}) {
    f.config.log_format = format;
    f.add(7, true);
    f.log.log_interval({5, 24, 24}, 1);
    CHECK_FALSE(f.last_has("lm loss"));
  }
  f.log.log_epoch(1, 5, std::nullopt);
  f.add(7, true);
  f.log.log_epoch(2, 6, std::nullopt);
  CHECK(f.last_has("lm loss: unknown, no step has one |"));
  CHECK(std::isnan(f.record.epochs.back().loss));
}

TEST_CASE("steps without a label that counts have no loss, and are in no mean") {
  Fixture f;
  for (const LogFormat format : {LogFormat::jupiter, LogFormat::megatron}) {
    f.config.log_format = format;
    f.add(4);
    f.add_unlabelled();
    f.add(2);
    f.add_unlabelled(true);
    f.log.log_interval({4, 24, 24}, 1);
    CHECK(f.last_has("| lm loss: 3.000000E+00 |"));
    CHECK(f.last_has("number of skipped iterations:   1 | number of nan iterations:   0 |"));
    f.add_unlabelled();
    f.log.log_interval({5, 30, 30}, 1);
    CHECK_FALSE(f.last_has("lm loss"));
    CHECK(f.last_has("grad norm"));
  }
  f.log.log_epoch(1, 10, std::nullopt);
  CHECK(f.record.epochs.back().loss == 3);
  f.add_unlabelled();
  f.log.log_epoch(2, 11, std::nullopt);
  CHECK(f.last_has("lm loss: unknown, no step has one |"));
  CHECK(std::isnan(f.record.epochs.back().loss));
}

TEST_CASE("the time of work between steps is not training's") {
  const auto begin = std::chrono::steady_clock::now();
  Fixture f;
  f.add(1);
  f.add(1);
  double apart = 0;
  f.log.untimed([&] {
    const auto from = std::chrono::steady_clock::now();
    while (apart < 0.02) apart = seconds_since(from);
  });
  f.log.log_interval({2, 12, 12}, 1);
  const double all = seconds_since(begin);
  CHECK(f.record.intervals[0].seconds_per_iteration > 0);
  CHECK(2 * f.record.intervals[0].seconds_per_iteration <= all - apart);
  // It is taken off once.
  f.add(1);
  f.log.log_interval({3, 18, 18}, 1);
  CHECK(f.record.intervals[1].seconds_per_iteration > 0);
}

TEST_CASE("an epoch's loss is the mean since the epoch before, whatever was logged between") {
  Fixture f;
  f.add(4);
  f.log.log_interval({1, 6, 6}, 1);
  f.add(2);
  f.add(std::nan(""), true);
  f.log.log_epoch(1, 3, std::nullopt);
  CHECK(f.lines.back() == " epoch    1/   3 | iteration        3 | lm loss: 3.000000E+00 |");
  f.add(8);
  f.log.log_epoch(2, 4, 1.0);
  CHECK(f.lines.back() ==
        " epoch    2/   3 | iteration        4 | lm loss: 8.000000E+00 | validation loss: "
        "1.000000E+00 | validation PPL: 2.718282E+00 |");
  f.add(std::nan(""), true);
  f.log.log_epoch(3, 5, 30.0);  // Megatron-LM takes exp() of 20 at most
  CHECK(f.last_has("| validation PPL: 4.851652E+08 |"));
  REQUIRE(f.record.epochs.size() == 3);
  CHECK_FALSE(f.record.epochs[0].validation_loss.has_value());
  CHECK(f.record.epochs[1].validation_loss == 1.0);
  CHECK(f.record.epochs[1].iteration == 4);
  CHECK(std::isnan(f.record.epochs[2].loss));
}

TEST_CASE("a run that is resumed within an epoch says of which steps the epoch's loss is") {
  Fixture f;
  f.log.start(true);
  f.add(4);
  f.add(2);
  f.log.log_epoch(1, 2, std::nullopt);
  CHECK(
      f.lines.back() ==
      " epoch    1/   3 | iteration        2 | lm loss: 3.000000E+00 | of iterations 1 to 2, since "
      "the run was resumed |");
  f.add(8);
  f.log.log_epoch(2, 3, std::nullopt);
  CHECK(f.lines.back() == " epoch    2/   3 | iteration        3 | lm loss: 8.000000E+00 |");
  CHECK(f.record.epochs[1].first_iteration == f.record.epochs[0].first_iteration + 2);
}
