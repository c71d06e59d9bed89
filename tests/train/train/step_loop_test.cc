// The step loop with a model that computes nothing: what it calls, in which order, and how it uses
// the results.
#include "src/train/step/step_loop.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "src/data/tokens/documents.h"
#include "tests/train/train/loop_fixture.h"

using namespace tally::train;

namespace {

using Fixture = LoopFixture;

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("micro batches are accumulated in the order of the samples, and results come per step") {
  Fixture f;
  CHECK(f.run().outcome == Outcome::completed);
  CHECK(f.model->calls == 12);
  CHECK(f.model->first_ids == std::vector<int32_t>{0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22});
  REQUIRE(f.record.steps.size() == 4);
  CHECK(f.record.steps[0].loss == doctest::Approx(5));
  CHECK(f.record.steps[3].loss == doctest::Approx(2));
  CHECK(f.record.steps[3].iteration == 4);
  CHECK(f.record.steps[2].grad_norm == doctest::Approx(0.1 * std::sqrt(8.0)));
  REQUIRE(f.record.intervals.size() == 2);
  CHECK(f.record.intervals[1].iteration == 4);
  CHECK(f.record.intervals[1].steps == 2);
  CHECK(f.updates == 4);
  CHECK(f.steady_allocations == 0);
}

TEST_CASE("log lines: mean loss of the interval, rate after it, samples, a rate of work") {
  Fixture f;
  f.config.optimizer.decay_style = "linear";
  f.config.optimizer.lr = 0.01;
  f.run();
  REQUIRE(f.lines.size() == 2);
  CHECK(contains(f.lines[0], " iteration        2/       4 | consumed samples:           12 |"));
  CHECK(contains(f.lines[0], "| lm loss: 4.500000E+00 |"));
  CHECK(contains(f.lines[0], "| learning rate: 5.000E-03 |"));
  CHECK(contains(f.lines[1], "| learning rate: 0.000E+00 |"));
  CHECK(contains(f.lines[1], "| global batch size:     6 |"));
  // The first step uses the rate of its start.
  CHECK(f.record.steps[0].learning_rate == 0.01);
  CHECK(f.record.steps[1].learning_rate == doctest::Approx(0.0075));
}

TEST_CASE("--log-format megatron: today's line, with the throughput when asked for") {
  Fixture f;
  f.config.log_format = LogFormat::megatron;
  f.run();
  REQUIRE(f.lines.size() == 2);
  CHECK(f.lines[0].rfind(" [20", 0) == 0);
  CHECK(
      contains(f.lines[0],
               "] iteration        2/       4 | consumed samples:           12 | elapsed time per "
               "iteration (ms): "));
  CHECK(contains(f.lines[0],
                 " | learning rate: 1.000000E-04 | global batch size:     6 | lm loss: "
                 "4.500000E+00 | loss scale: 1.0 | grad norm: "));
  CHECK_FALSE(contains(f.lines[0], "throughput"));
  f.config.log_throughput = true;
  f.run();
  CHECK(contains(f.lines[0], " | throughput per GPU (TFLOP/s/GPU): "));
}

TEST_CASE("weight decay follows the samples that were consumed before the step") {
  Fixture f;
  f.config.optimizer.weight_decay = 0.1;
  f.config.optimizer.end_weight_decay = 0.5;
  f.config.optimizer.weight_decay_samples = 24;
  f.config.optimizer.weight_decay_style = "linear";
  f.run();
  REQUIRE(f.model->decays.size() == 4);
  for (size_t i = 0; i < 4; ++i)
    CHECK(f.model->decays[i] == doctest::Approx(0.1 + 0.1 * static_cast<double>(i)));
}

TEST_CASE("--rampup-batch-size: steps of more and more samples, each the mean over its own") {
  Fixture f;
  f.config.rampup = {2, 2, 12};  // 2 2 2 4 ... by Megatron-LM's rule, then 6
  f.config.train_samples = 24;
  f.config.train_iterations = 6;
  f.config.log_interval = 4;
  f.config.model.hidden_dropout = 0.1;
  f.loss = [](int64_t) { return 3.0; };
  f.run();
  REQUIRE(f.record.steps.size() == 6);
  std::vector<int64_t> samples;
  for (const Step& step : f.record.steps) {
    samples.push_back(step.samples);
    CHECK(step.loss == doctest::Approx(3));
  }
  CHECK(samples == std::vector<int64_t>{2, 2, 2, 4, 4, 6});
  CHECK(f.model->weights ==
        std::vector<double>{1, 1, 1, 0.5, 0.5, 0.5, 0.5, 1.0 / 3, 1.0 / 3, 1.0 / 3});
  CHECK(f.model->first_ids == std::vector<int32_t>{0, 2, 4, 6, 8, 10, 12, 14, 16, 18});
  CHECK(std::set<uint64_t>(f.model->seeds.begin(), f.model->seeds.end()).size() == 10);
  REQUIRE(f.lines.size() == 1);
  CHECK(contains(f.lines[0], " iteration        4/       6 | consumed samples:           10 |"));
  CHECK(contains(f.lines[0], "| global batch size:     4 |"));
  CHECK(f.record.intervals[0].samples == 10);
  // A resumed run continues with the batch of its samples.
  const std::vector<uint64_t> seeds(f.model->seeds.begin() + 3, f.model->seeds.end());
  f.run(3, 6);
  CHECK(f.model->first_ids == std::vector<int32_t>{6, 8, 10, 12, 14, 16, 18});
  CHECK(f.model->seeds == seeds);
}

TEST_CASE("results are taken even when more steps lie between log lines than the ring holds") {
  Fixture f;
  f.config.log_interval = 1000;
  f.config.train_iterations = 600;
  f.loss = [](int64_t step) { return 1.0 + static_cast<double>(step); };
  f.run();
  REQUIRE(f.record.steps.size() == 600);
  for (size_t i = 0; i < 600; ++i)
    REQUIRE(f.record.steps[i].loss == doctest::Approx(1.0 + static_cast<double>(i)));
  CHECK(f.lines.empty());
}

TEST_CASE("a loss or gradient that is not finite ends the run with its step, numbers and advice") {
  Fixture f;
  f.loss = [](int64_t step) { return step == 2 ? std::nan("") : 1.0; };
  f.gradient = [](int64_t step) { return step == 2 ? std::nan("") : 1.0; };
  CHECK_THROWS_WITH_AS(
      f.run(),
      "iteration 3: the loss is not finite (loss nan, gradient norm nan, learning rate "
      "1.000E-04): lower --lr or lengthen the warm-up",
      CheckFailed);
  CHECK(f.record.steps.size() == 3);
  f.loss = [](int64_t) { return 1.0; };
  f.gradient = [](int64_t) { return std::numeric_limits<double>::infinity(); };
  CHECK_THROWS_AS(f.run(), CheckFailed);
}

TEST_CASE("a loss on held-out samples that is not finite ends the run, without a checkpoint") {
  Fixture f;
  int saved = 0;
  f.hooks.save = [&](const Progress&) { ++saved; };
  f.config.eval_iterations = 1;
  f.config.eval_interval = f.config.save_interval = 2;
  f.held_out_loss = std::nan("");
  CHECK_THROWS_WITH_AS(f.run(),
                       "iteration 2: the validation loss is not finite (nan): lower --lr or "
                       "lengthen the warm-up",
                       CheckFailed);
  REQUIRE(f.record.evaluations.size() == 1);
  CHECK(std::isnan(f.record.evaluations[0].loss));
  CHECK(saved == 0);
}

TEST_CASE("no checkpoint is written of a state that failed its check") {
  Fixture f;
  int saved = 0;
  f.hooks.save = [&](const Progress&) { ++saved; };
  f.config.save_interval = 1;
  f.loss = [](int64_t) { return std::nan(""); };
  CHECK_THROWS_AS(f.run(), CheckFailed);
  CHECK(saved == 0);
}

TEST_CASE("fp16: an overflow is skipped, the scale halves, the mean leaves the step out") {
  Fixture f;
  f.config.precision = Precision::f16;
  f.config.initial_loss_scale = 1024;
  f.config.hysteresis = 1;
  f.gradient = [](int64_t step) {
    return step == 1 ? std::numeric_limits<double>::infinity() : 1e-3;
  };
  CHECK(f.run().outcome == Outcome::completed);
  REQUIRE(f.record.steps.size() == 4);
  CHECK(f.record.steps[1].skipped);
  CHECK(f.record.steps[1].loss_scale == 1024);
  CHECK(f.record.steps[2].loss_scale == 512);
  CHECK(f.updates == 3);
  REQUIRE(f.lines.size() == 2);
  CHECK(contains(
      f.lines[0],
      "| lm loss: 5.000000E+00 | loss scale: 512.0 | number of skipped iterations:   1 |"));
  CHECK(contains(f.lines[1], "| loss scale: 512.0 | grad norm: "));
}

TEST_CASE("fp16: a skipped update does not advance the schedule, whenever the host learns of it") {
  for (const int64_t log_interval : {1, 3, 8}) {
    CAPTURE(log_interval);
    Fixture f;
    f.config.precision = Precision::f16;
    f.config.hysteresis = 1;
    f.config.train_iterations = 8;
    f.config.log_interval = log_interval;
    f.config.optimizer.lr = 0.01;
    f.config.optimizer.decay_style = "linear";
    f.config.optimizer.warmup_samples = 12;
    f.config.optimizer.decay_samples = 48;
    f.config.save_interval = 4;
    std::vector<Progress> saved;
    f.hooks.save = [&](const Progress& done) { saved.push_back(done); };
    const auto overflows = [](int64_t step) { return step == 0 || step == 1 || step == 4; };
    f.gradient = [&](int64_t step) {
      return overflows(step) ? std::numeric_limits<double>::infinity() : 1e-3;
    };
    f.run();
    // Megatron-LM: opt_param_scheduler.step() only after an update that was successful.
    const std::vector<double> sixths{0, 0, 0, 3, 6, 6, 5, 4};
    REQUIRE(f.record.steps.size() == 8);
    for (size_t i = 0; i < 8; ++i) {
      CHECK(f.record.steps[i].skipped == overflows(static_cast<int64_t>(i)));
      CHECK(f.record.steps[i].learning_rate == doctest::Approx(0.01 * sixths[i] / 6));
    }
    // The line shows the rate that the next step would have: 18 of 36 samples after the warm-up.
    if (log_interval != 3) {
      CHECK(contains(f.lines.back(), "| consumed samples:           48 | "));
      CHECK(contains(f.lines.back(), "| learning rate: 5.000E-03 |"));
    }
    REQUIRE(saved.size() == 2);
    CHECK(saved[0].consumed_samples == 24);
    CHECK(saved[0].scheduled_samples == 12);
    CHECK(saved[1].scheduled_samples == 30);
    // A resumed run goes on where the schedule was.
    f.gradient = [&](int64_t step) {
      return overflows(step + 4) ? std::numeric_limits<double>::infinity() : 1e-3;
    };
    f.run(Progress(saved[0]));
    REQUIRE(f.record.steps.size() == 4);
    for (size_t i = 0; i < 4; ++i)
      CHECK(f.record.steps[i].learning_rate == doctest::Approx(0.01 * sixths[i + 4] / 6));
  }
}

TEST_CASE("fp16: the scale changes from step to step though the host learns it at the end") {
  Fixture f;
  f.config.precision = Precision::f16;
  f.config.initial_loss_scale = 1024;
  f.config.hysteresis = 1;
  f.config.loss_scale_window = 2;
  f.config.train_iterations = 8;
  f.config.log_interval = 8;
  f.gradient = [](int64_t step) {
    return step == 1 ? std::numeric_limits<double>::infinity() : 1e-3;
  };
  std::vector<double> saved;
  CHECK(f.run().outcome == Outcome::completed);
  REQUIRE(f.record.steps.size() == 8);
  for (const Step& step : f.record.steps) saved.push_back(step.loss_scale);
  CHECK(saved == std::vector<double>{1024, 1024, 512, 512, 1024, 1024, 2048, 2048});
  CHECK(f.record.steps[1].skipped);
  CHECK(f.updates == 7);
}

TEST_CASE("fp16: a loss that is not finite at the smallest scale is not an overflow any more") {
  Fixture f;
  f.config.precision = Precision::f16;
  f.config.initial_loss_scale = 4;
  f.config.min_loss_scale = 1;
  f.config.hysteresis = 1;
  f.config.train_iterations = 20;
  f.loss = [](int64_t) { return std::nan(""); };
  f.gradient = [](int64_t) { return std::nan(""); };
  CHECK_THROWS_AS(f.run(), CheckFailed);
}

TEST_CASE("dropout: every micro batch of every step has its own seed, the same after resuming") {
  Fixture f;
  f.run();
  for (const uint64_t seed : f.model->seeds) CHECK(seed == 0);
  f.config.model.hidden_dropout = 0.1;
  f.run();
  const std::vector<uint64_t> all = f.model->seeds;
  CHECK(std::set<uint64_t>(all.begin(), all.end()).size() == 12);
  CHECK(std::count(all.begin(), all.end(), 0u) == 0);
  f.run(2, 12);
  CHECK(f.model->seeds == std::vector<uint64_t>(all.begin() + 6, all.end()));
  CHECK(f.model->first_ids.front() == 12);
  CHECK(f.record.steps.front().iteration == 3);
}

TEST_CASE("checkpoints: at every interval, at the end, once") {
  Fixture f;
  std::vector<std::pair<int64_t, int64_t>> saved;
  f.hooks.save = [&](const Progress& done) {
    saved.emplace_back(done.iteration, done.consumed_samples);
  };
  f.config.save_interval = 2;
  f.run();
  CHECK(saved == std::vector<std::pair<int64_t, int64_t>>{{2, 12}, {4, 24}});
  saved.clear();
  f.config.save_interval = 3;
  f.run();
  CHECK(saved == std::vector<std::pair<int64_t, int64_t>>{{3, 18}, {4, 24}});
  saved.clear();
  f.run(4, 24);  // nothing left to do
  CHECK(saved.empty());
}

TEST_CASE("being asked to stop: the step is finished and saved") {
  Fixture f;
  int64_t saved = 0;
  f.hooks.save = [&](const Progress& done) { saved = done.iteration; };
  f.hooks.stop = [&]() -> Ending {
    if (f.model && f.model->calls >= 6) return {Outcome::signalled, "SIGTERM was received"};
    return {};
  };
  const Ending ending = f.run();
  CHECK(ending.outcome == Outcome::signalled);
  CHECK(f.model->calls == 6);
  CHECK(f.record.steps.size() == 2);
  CHECK(saved == 2);
}

TEST_CASE("--exit-interval ends after its step") {
  Fixture f;
  f.config.exit_interval = 3;
  CHECK(f.run().outcome == Outcome::completed);
  CHECK(f.record.steps.size() == 3);
}

TEST_CASE("evaluation: next samples each time, its line, its place after resuming") {
  Fixture f;
  f.config.eval_interval = 2;
  f.config.eval_iterations = 1;
  f.run();
  REQUIRE(f.record.evaluations.size() == 2);
  CHECK(f.record.evaluations[0].loss == doctest::Approx(2));
  CHECK(f.model->evaluated_ids == std::vector<int32_t>{0, 2, 4, 6, 8, 10});
  REQUIRE(f.lines.size() == 4);
  CHECK(contains(f.lines[1], " validation loss at iteration 2 | lm loss value: 2.000000E+00 |"));
  f.run(2, 12);
  CHECK(f.model->evaluated_ids == std::vector<int32_t>{6, 8, 10});
  f.config.train_iterations = 3;
  f.run(2, 12);
  CHECK(contains(f.lines.back(), "validation loss at the end of training for val data"));
}

TEST_CASE("evaluation by samples: after the step that completes them, on the same samples") {
  Fixture f;
  f.config.eval_interval_samples = 8;  // steps of 6: 12, 18 and 24 complete 8, 16 and 24
  f.config.eval_iterations = 1;
  std::vector<std::pair<int64_t, double>> heard;
  f.hooks.evaluating = [&](const Progress& done) { heard.emplace_back(done.consumed_samples, 0); };
  f.hooks.evaluated = [&](const Progress& done, double loss) {
    heard.emplace_back(done.consumed_samples, loss);
  };
  f.run();
  REQUIRE(f.record.evaluations.size() == 3);
  CHECK(f.record.evaluations[0].iteration == 2);
  CHECK(f.record.evaluations[1].iteration == 3);
  CHECK(f.model->evaluated_ids == std::vector<int32_t>{0, 2, 4, 0, 2, 4, 0, 2, 4});
  REQUIRE(heard.size() == 6);
  CHECK(heard[0] == std::pair<int64_t, double>(12, 0));
  CHECK(heard[1].second == doctest::Approx(2));
  CHECK(f.succeeded);
}

TEST_CASE("--target-loss ends after the evaluation that reaches it, and saves") {
  Fixture f;
  f.config.eval_interval_samples = 12;
  f.config.eval_iterations = 1;
  f.config.target_loss = 2.5;
  int64_t saved = 0;
  f.hooks.save = [&](const Progress& done) { saved = done.iteration; };
  CHECK(f.run().outcome == Outcome::completed);
  CHECK(f.record.steps.size() == 2);
  CHECK(f.record.evaluations.size() == 1);
  CHECK(f.succeeded);
  CHECK(saved == 2);
  CHECK(contains(f.lines.back(), "a validation loss of at most 2.5 after 2 steps, 12 samples"));
  f.config.target_loss = 1.5;
  f.run();
  CHECK(f.record.steps.size() == 4);
  CHECK_FALSE(f.succeeded);
}

TEST_CASE("epochs: each is reported with its mean loss and the loss on all validation blocks") {
  Fixture f;
  f.config.epochs = 2;
  f.config.epoch_samples = 13;  // 26 samples: epoch 1 ends within step 3, four steps in all
  f.config.train_samples = 26;
  f.validation = std::make_shared<Numbers>(f.config.sequence, 3);
  f.run();
  REQUIRE(f.record.epochs.size() == 2);
  CHECK(f.record.epochs[0].epoch == 1);
  CHECK(f.record.epochs[0].iteration == 3);
  CHECK(f.record.epochs[0].loss == doctest::Approx(4));  // of 5, 4 and 3
  CHECK(f.record.epochs[1].epoch == 2);
  CHECK(f.record.epochs[1].iteration == 4);
  CHECK(f.record.epochs[1].loss == doctest::Approx(2));
  // Every epoch scores the three blocks, two at a time; the fourth row scores nothing.
  CHECK(f.model->evaluated_ids == std::vector<int32_t>{0, 2, 0, 2});
  CHECK(f.model->evaluated_labels == std::vector<int64_t>{8, 4, 8, 4});
  REQUIRE(f.record.evaluations.size() == 2);
  CHECK(*f.record.epochs[0].validation_loss == doctest::Approx(2));
  const auto line = std::find_if(f.lines.begin(), f.lines.end(), [](const std::string& l) {
    return contains(l,
                    " epoch    1/   2 | iteration        3 | lm loss: 4.000000E+00 | "
                    "validation loss: 2.000000E+00 | validation PPL: 7.389056E+00 |");
  });
  CHECK(line != f.lines.end());
  f.validation = nullptr;
  f.run();
  CHECK_FALSE(f.record.epochs[0].validation_loss.has_value());
  CHECK(f.record.evaluations.empty());
}

TEST_CASE("--eod-mask-loss: the model knows how many targets of each micro batch count") {
  Fixture f;
  f.train =
      with_document_ends(std::make_shared<Numbers>(f.config.sequence), {3, true, false, false});
  f.config.train_iterations = 1;
  f.run();
  CHECK(f.model->counted == std::vector<int64_t>{8, 4, 8});  // sample 3 is 3, 3, 3, ...
  CHECK(f.model->of_step == std::vector<double>{-1, -1, -1});
  f.train = nullptr;
  f.run();
  CHECK(f.model->counted == std::vector<int64_t>{-1, -1, -1});
}

TEST_CASE("--calculate-per-token-loss: every backward pass has the number of targets of its step") {
  Fixture f;
  f.train =
      with_document_ends(std::make_shared<Numbers>(f.config.sequence), {3, true, false, false});
  f.config.data.eod_mask_loss = f.config.per_token_loss = true;
  f.config.train_iterations = 2;
  f.run();
  CHECK(f.model->of_step == std::vector<double>{20, 20, 20, 24, 24, 24});
  CHECK(f.model->weights == std::vector<double>(6, 1));
  // No pass is divided: a gradient has the size of a mean's before it is added up.
  CHECK(f.steady_allocations == 0);
  // A resumed run counts its own.
  f.config.train_iterations = 3;
  f.run(1, 6);
  CHECK(f.model->of_step == std::vector<double>(6, 24));
  // From more micro batches than are made ahead otherwise.
  f.config.micro_batch = 1;
  f.config.global_batch = 40;
  f.config.train_samples = 80;
  f.config.train_iterations = 2;
  f.run();
  CHECK(f.model->of_step.front() == 40 * 4 - 4);
  CHECK(f.model->of_step.back() == 40 * 4);
}

TEST_CASE("--time-phases: every step has its phases, which make up its time") {
  Fixture f;
  f.config.time_phases = true;
  f.run();
  REQUIRE(f.record.steps.size() == 4);
  REQUIRE(f.record.phases.size() == 4);
  for (size_t k = 0; k < 4; ++k) {
    double sum = 0;
    for (const double seconds : f.record.phases[k]) sum += seconds;
    CHECK(sum <= f.record.steps[k].seconds);
    CHECK(f.record.phases[k][static_cast<size_t>(StepPhase::forward)] > 0);
    CHECK(f.record.phases[k][static_cast<size_t>(StepPhase::optimizer_update)] > 0);
  }
  f.config.time_phases = false;
  f.run();
  CHECK(f.record.phases.empty());
}

namespace {

// Lists the steps around which it is called, and how many were done by then.
class FakeWindow final : public StepWindow {
 public:
  explicit FakeWindow(const Record* record) : record_(record) {}
  void before_step(int64_t iteration) override { add("before", iteration); }
  void after_step(int64_t iteration) override { add("after", iteration); }
  std::string calls;

 private:
  void add(const char* what, int64_t iteration) {
    calls += fmt::format("{} {} ({} done), ", what, iteration, record_->steps.size());
  }
  const Record* record_;
};

}  // namespace

TEST_CASE("a window sees each step before it is enqueued and after") {
  Fixture f;
  auto window = std::make_unique<FakeWindow>(&f.record);
  const FakeWindow& seen = *window;
  f.window = std::move(window);
  f.config.log_interval = 1;  // the record has each step at once
  f.run(2, 12);
  CHECK(seen.calls == "before 3 (0 done), after 3 (0 done), before 4 (1 done), after 4 (1 done), ");
}
