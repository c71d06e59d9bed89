// The estimate of a run's memory against what the models really plan and allocate.
#include "src/train/memory_estimate.h"

#include <doctest/doctest.h>

#include <optional>
#include <random>

#include "src/model/stage.h"
#include "src/nn/lm_head.h"
#include "src/optim/optimizer.h"
#include "src/plan/memory_model.h"
#include "tests/train/model/tiny_gpt.h"

using namespace tally::train;

namespace {

std::unique_ptr<Stream> cpu_stream() {
  return make_stream({DeviceKind::cpu, 0});
}

size_t planned(const Config& c) {
  const auto stream = cpu_stream();
  ParameterTable table;
  register_gpt(c.model, &table);
  table.layout(*stream, c.compute_type());
  return one_set(make_gpt(c, table, *stream))->bytes();
}

std::string text_of(const Config& c) {
  return std::string(precision_name(c.precision)) + " " + recompute_name(c.recompute) + " layers " +
         std::to_string(c.model.layers) + " hidden " + std::to_string(c.model.hidden) + " batch " +
         std::to_string(c.micro_batch) + " x " + std::to_string(c.sequence) + " vocabulary " +
         std::to_string(c.model.padded_vocabulary);
}

}  // namespace

TEST_CASE("the estimate of activations is what the explicit model plans, to the byte") {
  std::mt19937 random(7);
  const auto pick = [&](std::initializer_list<int64_t> of) {
    return of.begin()[random() % of.size()];
  };
  for (const Precision precision :
       {Precision::f64, Precision::f32, Precision::bf16, Precision::f16}) {
    for (const Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full}) {
      for (int i = 0; i < 8; ++i) {
        Config c = tiny_config();
        c.precision = precision;
        c.recompute = recompute;
        c.model.layers = pick({1, 2, 5});
        c.model.heads = pick({1, 3});
        c.model.hidden = c.model.heads * pick({2, 20});
        c.model.ffn = pick({1, 31, 200});
        c.model.padded_vocabulary = pick({96, 1000, 50304, 9000000});
        c.model.positions = i % 2 == 0 ? Positions::rotary : Positions::learned;
        c.model.tied_embeddings = i % 3 != 0;
        c.model.hidden_dropout = pick({0, 1}) == 1 ? 0.1 : 0;
        c.model.attention_dropout = pick({0, 1}) == 1 ? 0.1 : 0;
        c.micro_batch = pick({1, 3, 16});
        c.sequence = pick({1, 37});
        if (c.model.padded_vocabulary > 1000000) c.model.hidden = c.model.heads * 2;
        CAPTURE(text_of(c));
        CHECK(planned_activation_bytes(c) == static_cast<double>(planned(c)));
      }
    }
  }
}

TEST_CASE("the estimate of parameters is what table and optimizer allocate, to the byte") {
  for (const Precision precision : {Precision::f64, Precision::f32, Precision::bf16}) {
    for (const Command command : {Command::train, Command::evaluate}) {
      for (const bool variant : {false, true}) {
        Config c = tiny_config();
        c.precision = precision;
        c.command = command;
        c.model.positions = variant ? Positions::rotary : Positions::learned;
        c.model.tied_embeddings = variant;
        CAPTURE(text_of(c));
        const auto stream = cpu_stream();
        ParameterTable table;
        register_gpt(c.model, &table);
        table.layout(*stream, c.compute_type());
        std::optional<OptimizerState> state;
        if (command == Command::train) state.emplace(table, *stream);
        CHECK(estimate_memory(c).parameters == static_cast<double>(stream->bytes_allocated()));
      }
    }
  }
}

TEST_CASE("the logits that are planned are those that the head holds") {
  const Config c = tiny_config();
  for (const bool gpu : {false, true})
    for (const int64_t tokens : {1, 1000, 8192, 65536})
      for (const int64_t vocabulary : {96, 50304, 9000000})
        for (const int64_t layers : {1, 200}) {
          ModelConfig m = c.model;
          m.padded_vocabulary = vocabulary;
          m.layers = layers;
          m.hidden = 1000;
          CHECK(logit_rows(tokens, vocabulary, m, DType::bf16, gpu) ==
                LmHead::rows_at_once(tokens, m, DType::bf16, gpu));
        }
}

TEST_CASE("token ids that are read ahead count, as many as a short run has") {
  Config c = tiny_config();
  c.micro_batch = 2, c.sequence = 100, c.global_batch = 2000, c.train_iterations = 10;
  CHECK(estimate_memory(c).batches == (8 + 2 * 1000 + 1) * 2 * 2 * 100 * 4.0);
  c.train_iterations = 1;
  CHECK(estimate_memory(c).batches == (8 + 1000 + 1) * 2 * 2 * 100 * 4.0);
}

TEST_CASE("the reference model holds no less than the explicit one") {
  Config c = tiny_config(DType::f32);
  const double explicit_model = estimate_memory(c).total();
  c.reference = true;
  c.recompute = Recompute::full;
  CHECK(estimate_memory(c).total() > explicit_model);
}
