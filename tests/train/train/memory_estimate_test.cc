// The estimate of a run's memory against what the models really plan and allocate.
#include "src/train/run/memory_estimate.h"

#include <doctest/doctest.h>

#include <random>

#include "src/plan/stage_count.h"
#include "src/train/step/pipeline_schedule.h"
#include "tests/train/model/tiny_encoder.h"
#include "tests/train/plan/allocated.h"

using namespace tally::train;

namespace {

// A model that two tensor parallel ranks, four stages and two chunks can divide.
Config divided_config(int tensor, int pipeline, int chunks) {
  Config c = tiny_config(DType::f32);
  c.model.layers = 8;
  c.model.heads = 4;
  c.model.hidden = 64;
  c.model.ffn = 128;
  c.model.padded_vocabulary = 256;
  c.sequence = c.model.max_positions = 64;
  c.tensor_parallel = tensor;
  c.pipeline_parallel = pipeline;
  c.virtual_pipeline_layers = chunks > 1 ? 8 / pipeline / chunks : 0;
  c.world_size = tensor * pipeline;
  c.micro_batch = 2;
  c.global_batch = 2 * 8;
  return c;
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
      for (int i = 0; i < 12; ++i) {
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
        if (i >= 6) {
          make_llama(&c.model);
          c.model.kv_channels = pick({2, 40});
        }
        CAPTURE(text_of(c));
        CHECK(planned_activation_bytes(c) == allocated_by(c, 0, false).scratch);
      }
    }
  }
}

TEST_CASE("the estimate of parameters is what table and optimizer allocate, to the byte") {
  for (const Precision precision : {Precision::f64, Precision::f32, Precision::bf16}) {
    for (const Command command : {Command::train, Command::evaluate}) {
      for (const int variant : {0, 1, 2, 3}) {
        Config c = tiny_config();
        c.precision = precision;
        c.command = command;
        c.model.positions = variant % 2 == 1 ? Positions::rotary : Positions::learned;
        c.model.tied_embeddings = variant % 2 == 1;
        if (variant >= 2) make_llama(&c.model);
        c.optimizer.kind = variant % 2 == 1 ? OptimizerKind::sgd : OptimizerKind::adam;
        CAPTURE(text_of(c));
        CHECK(estimate_memory(c).parameters ==
              allocated_by(c, 0, command == Command::train).states);
      }
    }
  }
}

TEST_CASE("the sets of activations that are planned are those of the pipeline's schedule") {
  for (const int stages : {2, 3, 4, 8})
    for (const int chunks : {1, 2, 3})
      for (const int64_t rounds : {1, 2, 3, 9})
        for (int stage = 0; stage < stages; ++stage) {
          PlanLayout l;
          l.pipeline = stages;
          l.chunks = chunks;
          l.micro_batches = chunks > 1 ? rounds * stages : rounds;
          const auto schedule = pipeline_schedule(stage, stages, chunks, l.micro_batches);
          for (int chunk = 0; chunk < chunks; ++chunk)
            CHECK(sets_in_flight(l, stage, chunk) == micro_batches_in_flight(schedule, chunk));
        }
}

TEST_CASE("the memory of a stage of a divided model is what it plans and allocates, to the byte") {
  for (const int tensor : {1, 2})
    for (const int pipeline : {1, 2, 4})
      for (const bool sequence : {false, true})
        for (const int chunks : {1, 2})
          for (const Recompute recompute :
               {Recompute::none, Recompute::selective, Recompute::full}) {
            if ((sequence && tensor == 1) || (chunks > 1 && pipeline < 4)) continue;
            Config c = divided_config(tensor, pipeline, chunks);
            c.sequence_parallel = sequence;
            c.recompute = recompute;
            c.model.tied_embeddings = recompute != Recompute::full;
            c.model.hidden_dropout = recompute == Recompute::none ? 0.1 : 0;
            for (int stage = 0; stage < pipeline; ++stage) {
              CAPTURE(tensor);
              CAPTURE(stage);
              CAPTURE(chunks);
              CHECK(stage_memory(c, stage, {}).allocated() == allocated_by(c, stage).all());
            }
          }
}

TEST_CASE("token ids that are read ahead count, as many as a short run has") {
  Config c = tiny_config();
  c.micro_batch = 2, c.global_batch = 2000, c.train_iterations = 10;
  c.sequence = c.model.max_positions = 100;
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

namespace {

std::string text_of_encoder(const Config& c) {
  return c.model.kind() + " task " + std::to_string(static_cast<int>(c.model.task)) + " " +
         text_of(c);
}

// Every task of both models, with sizes of its own.
template <typename Check>
void for_encoders(const Check& check) {
  std::mt19937 random(11);
  const auto pick = [&](std::initializer_list<int64_t> of) {
    return of.begin()[random() % of.size()];
  };
  for (const char* kind : {"bert", "distilbert"})
    for (const Task task : {Task::pretraining, Task::classification, Task::question_answering})
      for (const Precision precision : {Precision::f64, Precision::f32, Precision::bf16})
        for (const Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full}) {
          Config c = tiny_encoder(kind, task);
          c.precision = precision;
          c.recompute = recompute;
          c.model.layers = pick({1, 2, 5});
          c.model.heads = pick({1, 3});
          c.model.hidden = c.model.heads * pick({2, 20});
          c.model.ffn = pick({1, 31, 200});
          c.model.token_types = c.model.kind() == "bert" ? 2 : 0;
          c.model.classes = pick({2, 7});
          c.model.next_sentence = pick({0, 1}) == 1;
          c.model.padded_vocabulary = pick({96, 1000, 30592});
          c.model.hidden_dropout = pick({0, 1}) == 1 ? 0.1 : 0;
          if (pick({0, 1}) == 1) c.model.classifier_dropout.reset();
          c.micro_batch = pick({1, 3, 16});
          c.sequence = pick({1, 17});
          CAPTURE(text_of_encoder(c));
          check(c);
        }
}

}  // namespace

TEST_CASE("the estimate of an encoder's activations is what it plans, to the byte") {
  for_encoders([](const Config& c) {
    CHECK(planned_activation_bytes(c) == allocated_by(c, 0, false).scratch);
  });
}

TEST_CASE("the estimate of an encoder's parameters is what table and optimizer allocate") {
  for_encoders([](Config c) {
    for (const Command command : {Command::train, Command::evaluate}) {
      c.command = command;
      CHECK(estimate_memory(c).parameters == allocated_by(c, 0, command == Command::train).states);
      CHECK(stage_memory(c, 0, {}).parameters == static_cast<double>(parameter_count(c.model)));
    }
  });
}
