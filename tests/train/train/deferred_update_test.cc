// Deferred updates that overlap with the next step's forward pass: the same weights whenever they
// are read.
#include <doctest/doctest.h>

#include "src/train/step/step_loop.h"
#include "tests/train/model/tiny_gpt.h"

using namespace tally::train;

namespace {

class Tokens final : public SampleSource {
 public:
  explicit Tokens(int64_t sequence) : tokens_(sequence + 1) {}
  int64_t samples_per_epoch() const override { return 1000; }
  void sample(int64_t index, int32_t* out) const override {
    for (int64_t i = 0; i < tokens_; ++i)
      out[i] = static_cast<int32_t>((index * 31 + i * i * 7) % 89);
  }

 private:
  int64_t tokens_;
};

struct Seen {
  std::vector<std::vector<double>> saved;  // weights and optimizer's state at each checkpoint
  std::vector<double> losses, evaluated;
};

Seen run(Config c, bool late) {
  c.policy.fusions.deferred_update = late;
  c.global_batch = 2 * c.micro_batch;
  c.train_iterations = 7;
  c.log_interval = 2;
  c.eval_interval = 3;
  c.eval_iterations = 1;
  c.save_interval = 5;
  c.optimizer.decay_style = "constant";
  c.optimizer.lr = 1e-2;
  const auto stream = make_stream({DeviceKind::cpu, 0});
  ParameterTable table;
  register_model(c.model, &table);
  table.allocate(*stream, c.compute_type());
  const auto model = one_set(make_gpt(c, table, *stream));
  Optimizer optimizer(c, table, *stream);
  const OptimizerBuffers& kept = optimizer.buffers();
  table.initialize(1, kept.master);
  const auto communicator = make_single_communicator();
  const Mesh mesh(*communicator, {});
  const auto tokens = std::make_shared<Tokens>(c.sequence);
  Seen seen;
  LoopHooks hooks;
  const auto state = [&] {
    std::vector<double> all;
    for (const Tensor& t : {table.weights(), kept.master, kept.first_moment, kept.second_moment}) {
      const std::vector<double> part = read_doubles(*stream, t);
      all.insert(all.end(), part.begin(), part.end());
    }
    return all;
  };
  hooks.save = [&](const Progress&) { seen.saved.push_back(state()); };
  Record record;
  record.config = c;
  {
    StepLoop loop({c, *stream, table, {&model->stage()}, optimizer, tokens, tokens, mesh}, hooks,
                  &record);
    loop.run({});
  }
  // A later user without the loop: a step of its own.
  TinyBatch batch(c, *stream, 3);
  batch.batch.first = true;
  optimizer.begin_step(1e-2);
  model->forward_backward(batch.batch, 1, 0, optimizer.state());
  optimizer.apply();
  optimizer.finish_step();
  seen.saved.push_back(state());
  for (const Step& s : record.steps) seen.losses.push_back(s.loss);
  for (const auto& e : record.evaluations) seen.evaluated.push_back(e.loss);
  return seen;
}

}  // namespace

TEST_CASE("deferred updates: losses, evaluations and checkpoints are the same, bit for bit") {
  for (const bool tied : {true, false}) {
    for (const DType type : {DType::f64, DType::f32, DType::bf16}) {
      for (const int64_t layers : {1, 3}) {
        Config c = tiny_config(type);
        c.model.tied_embeddings = tied;
        c.model.layers = layers;
        const Seen want = run(c, false), got = run(c, true);
        REQUIRE(want.saved.size() == 3);
        REQUIRE(want.evaluated.size() == 3);
        CHECK(got.losses == want.losses);
        CHECK(got.evaluated == want.evaluated);
        CHECK(got.saved == want.saved);
        CHECK(want.saved[0] != want.saved[1]);
      }
    }
  }
}

TEST_CASE("deferred updates: the blocks' matrices but the first ones, and a head of its own") {
  for (const bool tied : {true, false}) {
    Config c = tiny_config(DType::f32);
    c.model.tied_embeddings = tied;
    const auto stream = make_stream({DeviceKind::cpu, 0});
    ParameterTable table;
    register_model(c.model, &table);
    table.allocate(*stream, DType::f32);
    const auto deferring = make_gpt(c, table, *stream);
    REQUIRE(deferring->deferred_update() != nullptr);
    CHECK(deferring->deferred_update()->first() == table.find("h.1.attn.c_proj.weight").offset);
    CHECK(deferring->deferred_update()->last() == table.decayed_elements());
    c.policy.fusions.deferred_update = false;
    CHECK(make_gpt(c, table, *stream)->deferred_update() == nullptr);
  }
}
