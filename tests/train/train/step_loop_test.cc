// The loop with a model that computes nothing: what it asks for, in which order, and what it makes
// of the results.
#include "src/train/step_loop.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <limits>
#include <set>

#include "src/train/data_sources.h"
#include "src/train/evaluation.h"
#include "src/train/stop.h"

using namespace tally::train;

namespace {

// Its loss at step n and its gradient are given by functions; the rest is counted.
class FakeModel final : public Model {
 public:
  FakeModel(ParameterTable& table, int64_t micro_batches)
      : table_(table), micro_batches_(micro_batches) {}
  void forward_backward(const Batch& batch, double weight, DropoutSeed seed,
                        StepState* state) override {
    seeds.push_back(seed.value);
    first_ids.push_back(batch.ids.as<int32_t>()[0]);
    const int64_t step = calls++ / micro_batches_;
    state->loss_sum += weight * loss(step);
    scales.insert(state->loss_scale);
    auto* g = table_.gradient("w").as<float>();
    for (int64_t i = 0; i < table_.gradient("w").numel(); ++i)
      g[i] = (batch.first ? 0 : g[i]) +
             static_cast<float>(gradient(step) * weight * state->loss_scale);
  }
  void evaluate(const Batch& batch, double weight, StepState* state) override {
    evaluated_ids.push_back(batch.ids.as<int32_t>()[0]);
    evaluated_targets.push_back(batch.counted);
    state->loss_sum += weight * 2.0;
  }
  size_t activation_bytes() const override { return 0; }

  std::function<double(int64_t)> loss = [](int64_t step) {
    return 5.0 - static_cast<double>(step);
  };
  std::function<double(int64_t)> gradient = [](int64_t) { return 0.1; };
  int64_t calls = 0;
  std::vector<uint64_t> seeds;
  std::vector<int32_t> first_ids, evaluated_ids;
  std::vector<int64_t> evaluated_targets;
  std::set<float> scales;

 private:
  ParameterTable& table_;
  int64_t micro_batches_;
};

// Sample n is n, n, n, ...
class Numbers final : public SampleSource {
 public:
  explicit Numbers(int64_t sequence, int64_t samples = 1000)
      : tokens_(sequence + 1), samples_(samples) {}
  int64_t samples_per_epoch() const override { return samples_; }
  void sample(int64_t index, int32_t* out) const override {
    std::fill(out, out + tokens_, static_cast<int32_t>(index));
  }

 private:
  int64_t tokens_, samples_;
};

struct Fixture {
  Fixture() {
    config.sequence = 4;
    config.micro_batch = 2;
    config.global_batch = 6;
    config.train_iterations = 4;
    config.train_samples = 24;
    config.log_interval = 2;
    config.optimizer.decay_style = "constant";
    config.optimizer.decay_samples = 24;
    config.model.hidden_dropout = config.model.attention_dropout = 0;
  }

  Ending run(int64_t iteration = 0, int64_t consumed = 0) {
    table.reset();  // before the stream that it lies on
    stream = make_stream({DeviceKind::cpu, 0});
    table = std::make_unique<ParameterTable>();
    Parameter w;
    w.name = "w";
    w.shape = {8};
    w.init_value = 1;
    table->add(w);
    table->layout(*stream, config.compute_type(), true);
    table->initialize(1);
    auto made = std::make_unique<FakeModel>(*table, config.micro_batches());
    if (loss) made->loss = loss;
    if (gradient) made->gradient = gradient;
    model = std::move(made);
    Optimizer optimizer(config, *table, *stream);
    record = Record{};
    record.config = config;
    lines.clear();
    hooks.print = [this](const std::string& line) { lines.push_back(line); };
    const auto numbers = std::make_shared<Numbers>(config.sequence);
    const LoopParts parts{config,
                          *stream,
                          *table,
                          *model,
                          optimizer,
                          numbers,
                          config.eval_interval > 0 ? numbers : validation,
                          *communicator};
    StepLoop loop(parts, hooks, &record);
    allocations = stream->allocations();
    const Ending ending = loop.run(iteration, consumed);
    steady_allocations = stream->allocations() - allocations;
    updates = optimizer.updates();
    return ending;
  }

  Config config;
  LoopHooks hooks;
  std::unique_ptr<Communicator> communicator = make_single_communicator();
  std::unique_ptr<Stream> stream;
  std::unique_ptr<ParameterTable> table;
  std::unique_ptr<FakeModel> model;
  std::function<double(int64_t)> loss, gradient;
  std::shared_ptr<const SampleSource> validation;
  Record record;
  std::vector<std::string> lines;
  int64_t allocations = 0, steady_allocations = 0, updates = 0;
};

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
      "1.000E-04): lower --lr, lengthen the warm-up, or train with --precision fp32",
      CheckFailed);
  CHECK(f.record.steps.size() == 3);
  f.loss = [](int64_t) { return 1.0; };
  f.gradient = [](int64_t) { return std::numeric_limits<double>::infinity(); };
  CHECK_THROWS_AS(f.run(), CheckFailed);
}

TEST_CASE("no checkpoint is written of a state that failed its check") {
  Fixture f;
  int saved = 0;
  f.hooks.save = [&](int64_t, int64_t) { ++saved; };
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

TEST_CASE("fp16: a loss that is not finite at the smallest scale is no overflow any more") {
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
  f.hooks.save = [&](int64_t iteration, int64_t samples) {
    saved.emplace_back(iteration, samples);
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
  f.hooks.save = [&](int64_t iteration, int64_t) { saved = iteration; };
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
  CHECK(f.model->evaluated_targets == std::vector<int64_t>{8, 4, 8, 4});
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

TEST_CASE("a text's blocks score every token but the first once, with the context of the stride") {
  std::vector<int32_t> tokens(11);
  for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<int32_t>(i) + 100;
  for (int64_t stride = 1; stride <= 4; ++stride) {
    for (size_t size = 2; size <= tokens.size(); ++size) {
      CAPTURE(stride);
      CAPTURE(size);
      const auto blocks = make_text_blocks({tokens.begin(), tokens.begin() + size}, 4, stride);
      CHECK(blocks->targets() == static_cast<int64_t>(size) - 1);
      std::vector<int32_t> scored;
      for (int64_t k = 0; k < blocks->blocks(); ++k) {
        std::vector<int32_t> ids(4), targets(4);
        blocks->fill(k, ids.data(), targets.data());
        int fresh = 0;
        for (size_t j = 0; j < 4; ++j) {
          if (targets[j] < 0) continue;
          ++fresh;
          CHECK(targets[j] == ids[j] + 1);
          CHECK(ids[0] == 100 + k * stride);
          if (k > 0) CHECK(static_cast<int64_t>(j) >= 4 - stride);
          scored.push_back(targets[j]);
        }
        CHECK(fresh > 0);
      }
      CHECK(scored == std::vector<int32_t>(tokens.begin() + 1, tokens.begin() + size));
    }
  }
}

TEST_CASE("tokens beyond the vocabulary are refused with the sample and the advice") {
  const auto checked = check_tokens(std::make_shared<Numbers>(4), 4, 10, "corpus");
  std::vector<int32_t> out(5);
  checked->sample(9, out.data());
  CHECK_THROWS_WITH(checked->sample(10, out.data()),
                    "corpus: sample 10 holds token 10, and the vocabulary has 10 tokens: give the "
                    "--tokenizer-type that the dataset was made with, or --vocab-size");
}

TEST_CASE("signals are remembered, the first of them") {
  catch_stop_signals();
  CHECK(received_stop_signal() == 0);
  std::raise(SIGUSR1);
  std::raise(SIGTERM);
  CHECK(received_stop_signal() == SIGUSR1);
  CHECK(signal_name(SIGUSR2) == "SIGUSR2");
}

TEST_CASE("the time limit counts from the program's start") {
  const auto now = TimeLimit::Clock::now();
  CHECK_FALSE(TimeLimit(0, now - std::chrono::hours(100)).reached());
  CHECK(TimeLimit(5, now - std::chrono::minutes(6)).reached());
  CHECK_FALSE(TimeLimit(5, now - std::chrono::minutes(4)).reached());
}
