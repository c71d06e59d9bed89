// Replicas that share the optimizer's state and the gradients (ZeRO): the program's runs are those
// of replicas that share nothing. layout_ranks compares gradients and parameters.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>

#include "tests/train/parallel/ranks.h"

namespace {

// Sizes that nothing divides, accumulation, clipping, and steps between which weights are read.
const std::string odd =
    "--num-layers 3 --hidden-size 36 --num-attention-heads 4 --ffn-hidden-size 52 --seq-length 11 "
    "--vocab-size 97 --micro-batch-size 2 --global-batch-size 24 --mock-data --log-interval 2 "
    "--lr 1e-3 --device cpu --train-iters 6 --eval-interval 3 --eval-iters 2 "
    "--check-weight-hash-across-dp-replicas-interval 2 ";
const std::string optim = "--use-distributed-optimizer ";
const std::string grads = "--data-parallel-sharding-strategy optim_grads ";

json record_of(const Folder& folder, const std::string& run, int ranks) {
  const std::string file = folder / "record.json";
  const Ended ended =
      tally_train(fmt::format("{}--nproc-per-node {} --record {}", run, ranks, file));
  INFO(run);
  INFO(ended.err);
  REQUIRE(ended.code == 0);
  return read_json(file);
}

void check_near(const json& a, const json& b, double tolerance) {
  REQUIRE(a.size() == b.size());
  REQUIRE(!a.empty());
  for (size_t i = 0; i < a.size(); ++i)
    CHECK(std::abs(a[i].get<double>() - b[i].get<double>()) <= tolerance * b[i].get<double>());
}

void check_same(const json& got, const json& want, double tolerance) {
  check_near(got["steps"]["loss"], want["steps"]["loss"], tolerance);
  // The norm is recorded in float32.
  check_near(got["steps"]["grad_norm"], want["steps"]["grad_norm"], std::max(tolerance, 1e-6));
  const json &a = got["results"]["evaluations"], &b = want["results"]["evaluations"];
  REQUIRE(a.size() == b.size());
  for (size_t i = 0; i < a.size(); ++i)
    check_near(json{a[i]["loss"]}, json{b[i]["loss"]}, tolerance);
}

}  // namespace

TEST_CASE("replicas that share state and gradients compute what one process does") {
  const Folder folder("zero");
  const std::string run = odd + "--clip-grad 0.5 --precision ";
  const json exact = record_of(folder, run + "fp64 ", 1);
  const json single = record_of(folder, run + "fp32 ", 1);
  struct Row {
    int ranks;
    std::string strategy;
  };
  for (const Row& row :
       {Row{2, optim + "--ddp-bucket-size 5000 "}, Row{3, optim + "--ddp-bucket-size 0 "},
        Row{4, optim}, Row{2, optim + "--no-fusion overwrite "}, Row{2, optim + "--reference "},
        Row{2, grads + "--no-fusion overwrite "}, Row{3, grads}, Row{4, grads}}) {
    CAPTURE(row.ranks);
    CAPTURE(row.strategy);
    check_same(record_of(folder, run + "fp64 " + row.strategy, row.ranks), exact, 1e-11);
  }
  for (const std::string& strategy : {optim, grads})
    check_same(record_of(folder, run + "fp32 " + strategy, 3), single, 1e-5);
}

TEST_CASE("two replicas that share the state have the bits of two that do not") {
  // The sum of two numbers has no order, and nothing is clipped.
  const Folder folder("zero");
  for (const std::string precision : {"fp64", "fp32", "bf16"}) {
    const std::string run = odd + "--clip-grad 0 --precision " + precision + " ";
    const json whole = record_of(folder, run, 2), shared = record_of(folder, run + optim, 2);
    CHECK(shared["steps"]["loss"] == whole["steps"]["loss"]);
    CHECK(shared["results"]["evaluations"] == whole["results"]["evaluations"]);
  }
}

// Layers that stay in bf16, and evaluations between steps, for which the weights are gathered.
TEST_CASE("replicas that gather the weights' casts to FP8 have the bits of those that cast them") {
  const Folder folder("zero");
  const std::string run =
      "--num-layers 4 --hidden-size 64 --num-attention-heads 4 --ffn-hidden-size 96 --seq-length "
      "16 "
      "--vocab-size 97 --micro-batch-size 1 --mock-data --log-interval 2 --lr 1e-2 --device cpu "
      "--train-iters 6 --eval-interval 3 --eval-iters 2 --clip-grad 0 --bf16 --fp8-format hybrid "
      "--check-weight-hash-across-dp-replicas-interval 2 ";
  struct Row {
    int ranks;
    std::string layout;
  };
  const auto compare = [&](const Row& row, const std::string& strategy) {
    // Under ZeRO 2 several micro batches are added in another order.
    const std::string batch =
        strategy == grads ? "--global-batch-size 2 " : "--global-batch-size 8 ";
    CAPTURE(row.layout);
    CAPTURE(strategy);
    const json whole = record_of(folder, run + batch + row.layout, row.ranks);
    const json shared = record_of(folder, run + batch + row.layout + strategy, row.ranks);
    CHECK(shared["steps"]["loss"] == whole["steps"]["loss"]);
    CHECK(shared["results"]["evaluations"] == whole["results"]["evaluations"]);
  };
  for (const Row& row :
       {Row{2, ""}, Row{2, "--first-last-layers-bf16 "}, Row{4, "--tensor-model-parallel-size 2 "},
        Row{4, "--pipeline-model-parallel-size 2 "}})
    for (const std::string& strategy : {optim, grads}) compare(row, strategy);
  // A bucket is a matrix, or several, of some of which a replica owns nothing.
  compare({2, ""}, optim + "--ddp-bucket-size 5000 ");
}

TEST_CASE("an overflow in the shares of one replica skips the step in all of them") {
  const Folder folder("zero");
  const std::string run = odd + "--clip-grad 0.5 --fp16 --hysteresis 1 --initial-loss-scale 3e7 ";
  const json whole = record_of(folder, run, 2);
  CHECK(whole["steps"]["skipped"][0] == true);
  CHECK(whole["steps"]["skipped"][5] == false);
  for (const std::string& strategy : {optim, grads}) {
    const json shared = record_of(folder, run + strategy, 2);
    CHECK(shared["steps"]["skipped"] == whole["steps"]["skipped"]);
    CHECK(shared["steps"]["loss_scale"] == whole["steps"]["loss_scale"]);
    check_near(shared["steps"]["loss"], whole["steps"]["loss"], 1e-4);
  }
}

TEST_CASE("a run resumes with other replicas and another sharing, as if it had not stopped") {
  const Folder folder("zero");
  const std::string run = odd + "--clip-grad 0.5 --precision fp64 ";
  const json whole = record_of(folder, run, 1);
  const std::string save = fmt::format("--exit-interval 3 --save {} ", folder / "checkpoint");
  const std::string load = fmt::format("--load {} ", folder / "checkpoint");
  struct Row {
    int from, to;
    std::string first, second;
  };
  for (const Row& row : {Row{3, 2, optim, grads}, Row{2, 1, grads, ""}, Row{1, 3, "", optim}}) {
    CAPTURE(row.from);
    CAPTURE(row.to);
    fs::remove_all(folder / "checkpoint");
    record_of(folder, run + save + row.first, row.from);
    const json rest = record_of(folder, run + load + row.second, row.to);
    const json& losses = whole["steps"]["loss"];
    check_near(rest["steps"]["loss"], json(losses.begin() + 3, losses.end()), 1e-11);
  }
}

TEST_CASE("in 16 bits a resumed run has the bits of one that did not stop") {
  const Folder folder("zero");
  const std::string run = odd + "--clip-grad 0.5 --bf16 " + optim;
  const json whole = record_of(folder, run, 2);
  record_of(folder, run + "--exit-interval 3 --save " + folder / "checkpoint ", 2);
  const json rest = record_of(folder, run + "--load " + folder / "checkpoint ", 2);
  const json& losses = whole["steps"]["loss"];
  CHECK(rest["steps"]["loss"] == json(losses.begin() + 3, losses.end()));
}
