// --rampup-batch-size. The expected batches and numbers of steps are those of Megatron-Core 0.16.1:
// its num_microbatches_calculator.py, driven as update_train_iters() and train() of
// megatron/training/training.py drive it.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <utility>

#include "src/config/args.h"
#include "tests/train/config/parse.h"

using namespace tally::train;

namespace {

using Stages = std::vector<std::pair<int64_t, int64_t>>;  // global batch, steps that have it

Stages stages_of(const Config& c) {
  Stages stages;
  int64_t consumed = 0;
  for (int64_t i = 0; i < c.train_iterations; ++i) {
    const int64_t batch = c.global_batch_at(consumed);
    if (stages.empty() || stages.back().first != batch) stages.emplace_back(batch, 0);
    ++stages.back().second;
    consumed += batch;
  }
  return stages;
}

}  // namespace

TEST_CASE("the global batch grows as Megatron-LM's, step by step") {
  struct Row {
    const char* rampup;
    int global, micro, ranks, samples;
    Stages stages;
  };
  const Row rows[] = {
      {"2 2 10", 6, 2, 1, 30, {{2, 3}, {4, 1}, {6, 3}}},
      {"4 4 40", 16, 2, 2, 100, {{4, 4}, {8, 2}, {12, 1}, {16, 3}}},
      {"1 1 7", 4, 1, 1, 50, {{1, 3}, {2, 1}, {3, 1}, {4, 10}}},
      {"6 3 100", 9, 3, 1, 40, {{6, 7}}},  // the samples end before the ramp does
      {"32 32 1000", 192, 4, 8, 5000, {{32, 7}, {64, 3}, {96, 2}, {128, 2}, {160, 1}, {192, 20}}}};
  for (const Row& row : rows) {
    CAPTURE(std::string(row.rampup));
    const Config c = parse(
        fmt::format("--mock-data --rampup-batch-size {} --global-batch-size {} --micro-batch-size "
                    "{} --train-samples {}",
                    row.rampup, row.global, row.micro, row.samples),
        row.ranks);
    CHECK(stages_of(c) == row.stages);
    CHECK(c.micro_batches_at(0) == row.stages[0].first / (row.micro * row.ranks));
    CHECK(c.train_samples == row.samples);
  }
}

TEST_CASE("the example of Megatron-LM's help: 126 intervals of about 2380 samples") {
  const Config c = parse(
      "--mock-data --rampup-batch-size 16 8 300_000 --global-batch-size 1024 --micro-batch-size 8 "
      "--train-samples 1_000_000");
  CHECK(c.train_iterations == 2002);
  const Stages stages = stages_of(c);
  REQUIRE(stages.size() == 127);
  CHECK(stages[0] == std::pair<int64_t, int64_t>{16, 149});
  CHECK(stages[3] == std::pair<int64_t, int64_t>{40, 60});
  CHECK(stages[125] == std::pair<int64_t, int64_t>{1016, 2});
  CHECK(stages[126] == std::pair<int64_t, int64_t>{1024, 683});
}

TEST_CASE("a ramp of very many samples is counted without walking along all of it") {
  const Config c = parse(
      "--mock-data --rampup-batch-size 1 1 4_000_000_000_000_000_000 --global-batch-size 3 "
      "--train-samples 5_000_000_000_000_000_000");
  // 2e18 steps of 1, 1e18 of 2 and 1e18 / 3 of 3, to what doubles tell apart.
  CHECK(static_cast<double>(c.train_iterations) == doctest::Approx(10.0 / 3 * 1e18));
}

TEST_CASE("what Megatron-LM refuses is refused in its words") {
  const std::string samples = "--mock-data --train-samples 100 --global-batch-size 8 ";
  const auto error = [&](const std::string& rampup, const std::string& more = "") {
    return error_of(samples + more + "--rampup-batch-size " + rampup);
  };
  CHECK(error("2 2") ==
        "--rampup-batch-size: expected the following format: --rampup-batch-size <start batch "
        "size> <batch size increment> <ramp-up samples>, and 2 values were given");
  CHECK(error("2 two 3") == "--rampup-batch-size: 'two' is not a whole number");
  CHECK(error("0 2 3") == "--rampup-batch-size: 0 is too small: at least 1");
  CHECK(error("16 2 30") ==
        "--rampup-batch-size: expected global batch size to be greater than or equal to start "
        "batch size, got 8 and 16");
  CHECK(error("8 2 30") ==
        "--rampup-batch-size: starts with --global-batch-size 8 itself: leave it out");
  CHECK(error("2 4 30") ==
        "--rampup-batch-size: expected global batch size interval (6) to be divisible by global "
        "batch size increment (4)");
  CHECK(error("2 2 30", "--micro-batch-size 4 ") ==
        "--rampup-batch-size: current global batch size (2) is not divisible by micro-batch-size "
        "(4) times data parallel size (1)");
  CHECK(error_of(base + "--rampup-batch-size 1 1 5") ==
        "--rampup-batch-size: expected no batch-size rampup for iteration-based training: give the "
        "length as --train-samples");
}

// The interleaved schedule takes micro batches in groups of as many as there are stages.
TEST_CASE("every batch of a ramp-up is one that the interleaved schedule can divide") {
  const std::string flags =
      "--mock-data --train-samples 200 --num-layers 8 --micro-batch-size 1 --global-batch-size 16 "
      "--pipeline-model-parallel-size 4 ";
  const std::string interleaved = flags + "--num-layers-per-virtual-pipeline-stage 1 ";
  CHECK(error_of(interleaved + "--rampup-batch-size 6 10 60", 4) ==
        "--rampup-batch-size: number of microbatches (6) is not divisible by "
        "pipeline-model-parallel-size (4) when using interleaved schedule, at a global batch size "
        "of 6");
  CHECK(error_of(interleaved + "--rampup-batch-size 4 4 60", 4) == "(no error)");
  CHECK(error_of(flags + "--rampup-batch-size 6 10 60", 4) == "(no error)");
}
