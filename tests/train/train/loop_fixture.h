// A step loop with a model that computes nothing.
#pragma once

#include <doctest/doctest.h>

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "src/nn/gemm_hook.h"
#include "src/train/step/step_loop.h"
#include "tests/train/train/numbers_source.h"

namespace tally::train {

// Its loss at step n and its gradient are given by functions; the rest is counted.
class FakeStage final : public Stage {
 public:
  FakeStage(ParameterTable& table, int64_t micro_batches)
      : table_(table), micro_batches_(micro_batches) {}
  std::unique_ptr<ActivationSet> make_activations() override { return std::make_unique<Set>(); }
  void forward(const Batch& batch, const Pass& pass, ActivationSet& set) override {
    static_cast<Set&>(set).batch = batch;
    static_cast<Set&>(set).pass = pass;
    seeds.push_back(pass.dropout.value);
    first_ids.push_back(batch.ids.as<int32_t>()[0]);
  }
  void backward(ActivationSet& set) override {
    const Pass& pass = static_cast<Set&>(set).pass;
    const int64_t step = calls++ / micro_batches_;
    weights.push_back(pass.weight);
    counted.push_back(static_cast<Set&>(set).batch.counted[0]);
    of_step.push_back(pass.counted ? pass.counted[0] : -1);
    pass.state->loss_sums[0] += pass.weight * loss(step);
    scales.insert(pass.state->loss_scale);
    tell_of_gemms();
    if (step * micro_batches_ == calls - 1) decays.push_back(pass.state->weight_decay);
    const Tensor gradients = table_.get("w").gradient;
    auto* g = gradients.as<float>();
    for (int64_t i = 0; i < gradients.numel(); ++i)
      g[i] = (static_cast<Set&>(set).batch.first ? 0 : g[i]) +
             static_cast<float>(gradient(step) * pass.weight * pass.state->loss_scale);
  }
  void evaluate(const Batch& batch, const Pass& pass, ActivationSet&) override {
    evaluated_ids.push_back(batch.ids.as<int32_t>()[0]);
    evaluated_labels.push_back(batch.counted[0]);
    const auto labels =
        static_cast<double>(batch.counted[0] < 0 ? batch.ids.numel() : batch.counted[0]);
    pass.state->loss_sums[0] += pass.weight * held_out_loss * labels;
  }
  size_t scratch_bytes() const override { return 0; }
  void set_gemm_hook(const GemmHook& hook) override { gemm_hook = hook; }

  std::function<double(int64_t)> loss = [](int64_t step) {
    return 5.0 - static_cast<double>(step);
  };
  std::function<double(int64_t)> gradient = [](int64_t) { return 0.1; };
  double held_out_loss = 2;
  int64_t calls = 0;
  GemmHook gemm_hook;
  int64_t gemms = 0;  // that were called again
  std::vector<uint64_t> seeds;
  std::vector<int32_t> first_ids, evaluated_ids;
  std::vector<int64_t> evaluated_labels;
  std::set<float> scales;
  std::vector<double> decays;  // of each step
  std::vector<double> weights;
  std::vector<int64_t> counted;
  std::vector<double> of_step;  // labels of the step, where its losses are divided by them

 private:
  void tell_of_gemms() {
    if (!gemm_hook) return;
    for (const char* name : {"once", "twice", "twice"}) gemm_hook({name, [this] { ++gemms; }});
  }
  struct Set final : ActivationSet {
    size_t bytes() const override { return 0; }
    Batch batch;
    Pass pass;
  };

  ParameterTable& table_;
  int64_t micro_batches_;
};

struct LoopFixture {
  LoopFixture() {
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
    return run(Progress{iteration, consumed, consumed});
  }
  Ending run(const Progress& done) {
    table.reset();  // before the stream that it lies on
    stream = make_stream({DeviceKind::cpu, 0});
    table = std::make_unique<ParameterTable>();
    Parameter w;
    w.name = "w";
    w.shape = {8};
    w.init_value = 1;
    table->add(w);
    table->allocate(*stream, config.compute_type());
    table->initialize(1);
    auto made = std::make_unique<FakeStage>(*table, config.micro_batches());
    if (loss) made->loss = loss;
    if (gradient) made->gradient = gradient;
    made->held_out_loss = held_out_loss;
    model = std::move(made);
    Optimizer optimizer(config, *table, *stream);
    record = Record{};
    record.config = config;
    lines.clear();
    hooks.print = [this](const std::string& line) { lines.push_back(line); };
    const std::shared_ptr<const SampleSource> numbers = std::make_shared<Numbers>(config.sequence);
    const LoopParts parts{config,
                          *stream,
                          *table,
                          {model.get()},
                          optimizer,
                          train ? train : numbers,
                          config.evaluates() ? numbers : validation,
                          mesh,
                          nullptr,
                          window.get()};
    StepLoop loop(parts, hooks, &record);
    allocations = stream->allocations();
    const Ending ending = loop.run(done);
    succeeded = loop.succeeded();
    steady_allocations = stream->allocations() - allocations;
    if (after) after(loop);
    updates = optimizer.updates();
    return ending;
  }

  Config config;
  bool succeeded = false;
  LoopHooks hooks;
  std::unique_ptr<Communicator> communicator = make_single_communicator();
  Mesh mesh{*communicator, {}};
  std::unique_ptr<Stream> stream;
  std::unique_ptr<ParameterTable> table;
  std::unique_ptr<FakeStage> model;
  std::function<double(int64_t)> loss, gradient;
  double held_out_loss = 2;
  std::shared_ptr<const SampleSource> train, validation;
  std::unique_ptr<StepWindow> window;
  std::function<void(StepLoop&)> after;  // is called after run()
  Record record;
  std::vector<std::string> lines;
  int64_t allocations = 0, steady_allocations = 0, updates = 0;
};

}  // namespace tally::train
