// A size is written in one place: a wrong one that is planted in a layer is in the plan as it is in the
// model. The build plants it (CMakeLists.txt): the tensor of attention's output has `planted_rows` rows
// too many.
#include <doctest/doctest.h>

#include "src/plan/stage_count.h"
#include "tests/train/model/tiny_encoder.h"
#include "tests/train/plan/allocated.h"

namespace tally::train {

int64_t planted_rows = 0;

namespace {

struct Planted {
  explicit Planted(int64_t rows) { planted_rows = rows; }
  ~Planted() { planted_rows = 0; }
};

struct Bytes {
  double plan, model;
};

Bytes bytes_of(const Config& c, int stage, int64_t rows) {
  const Planted planted(rows);
  return {stage_memory(c, stage, {}).allocated(), allocated_by(c, stage).all()};
}

// Rows of 256 bytes, so that no rounding hides them.
Config wide_config(DType type) {
  Config c = tiny_config(type);
  c.model.layers = 8;
  c.model.heads = 4;
  c.model.hidden = 256 / static_cast<int64_t>(size_of(type));
  c.model.ffn = 2 * c.model.hidden;
  c.model.padded_vocabulary = 256;
  c.sequence = c.model.max_positions = 64;
  c.micro_batch = 2;
  c.global_batch = 2 * 8;
  return c;
}

void check_planted(const Config& c, int stage, double tensors) {
  const Bytes right = bytes_of(c, stage, 0), wrong = bytes_of(c, stage, 3);
  CHECK(right.plan == right.model);
  CHECK(wrong.plan == wrong.model);
  CHECK(wrong.model - right.model == 3 * 256 * tensors);
}

TEST_CASE("a wrong size in a layer changes the plan and the model alike") {
  for (const DType type : {DType::f64, DType::f32, DType::bf16})
    for (const Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full})
      for (const bool llama : {false, true}) {
        Config c = wide_config(type);
        c.recompute = recompute;
        if (llama) {
          c.model.set_kind("llama");
          c.model.positions = Positions::rotary;
        }
        check_planted(c, 0, recompute == Recompute::full ? 1 : 8);
      }
}

TEST_CASE("and so in every stage of a pipeline, among replicas, and in an encoder") {
  Config c = wide_config(DType::f32);
  c.pipeline_parallel = 4;
  c.data_parallel = 2;
  c.world_size = 8;
  c.global_batch *= 2;
  for (const bool shares : {false, true}) {
    c.distributed_optimizer = c.shard_gradients = shares;
    for (int stage = 0; stage < 4; ++stage) check_planted(c, stage, 2 * (4 - stage));
  }
  // The memory of casts that replicas gather.
  c = wide_config(DType::bf16);
  c.fp8.format = Fp8Config::Format::hybrid;
  c.data_parallel = c.world_size = 2;
  c.distributed_optimizer = true;
  check_planted(c, 0, 8);
  for (const Task task : {Task::pretraining, Task::classification, Task::question_answering}) {
    Config e = wide_config(DType::f32);
    e.model.set_kind("bert");
    e.model.task = task;
    check_planted(e, 0, 8);
  }
}

}  // namespace
}  // namespace tally::train
