// Several ranks of which one is given something else, hangs, or is lost.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <fstream>

#include "tests/train/parallel/ranks.h"

TEST_CASE("ranks with different flags do not train; one sentence names flag, values and ranks") {
  const std::string run = flags + "--train-iters 6 ";
  const auto refused = [&](const std::string& other, const std::string& message) {
    CAPTURE(other);
    int code_of_one = 0;
    const Ended ended = two_ranks(run, run + other, &code_of_one);
    INFO(ended.err);
    CHECK(ended.code == 2);
    CHECK(code_of_one == 2);
    CHECK(count(ended.err, "tally-train: error:") == 1);
    CHECK(contains(ended.err, message));
    CHECK(contains(ended.err, ": give every rank the same flags"));
    CHECK(!contains(ended.out, "consumed samples"));
  };
  refused("--lr 2e-3", ": --lr is 0.002 on rank 1 (");
  refused("--lr 2e-3", ") and 0.001 on rank 0 (");
  refused("--train-iters 8",
          ": the number of steps (--train-iters, --train-samples or --epochs) "
          "is 8 on rank 1 (");
  refused("--seed 7", ": --seed is 7 on rank 1 (");
  refused("--ddp-bucket-size 10", ": --ddp-bucket-size is 10 on rank 1 (");
}

TEST_CASE("--help of one rank alone ends the other, too") {
  int code_of_one = 0;
  const Ended ended = two_ranks("train --help", flags + "--train-iters 6", &code_of_one);
  CHECK(ended.code == 1);
  CHECK(code_of_one == 1);
  CHECK(contains(ended.err, "rank 0 ended its run before this rank did"));
}

TEST_CASE("ranks that read different datasets do not train") {
  const Folder folder("datasets");
  const auto prepare = [&](const std::string& name, const std::string& text) {
    std::ofstream(folder / (name + ".txt")) << text;
    REQUIRE(tally_train("prepare --tokenizer-type bytes --input " + folder / (name + ".txt") +
                        " --output " + folder / name)
                .code == 0);
  };
  const std::string text(1000, 'x');
  prepare("one", text);
  prepare("same", text);
  prepare("short", text.substr(10));
  prepare("other", std::string(1000, 'y'));
  const std::string run = tiny + "--train-iters 2 --split 1 --data-path ";
  int code_of_one = -1;
  CHECK(two_ranks(run + folder / "one", run + folder / "same", &code_of_one).code == 0);
  CHECK(code_of_one == 0);
  for (const std::string name : {"short", "other"}) {
    CAPTURE(name);
    const Ended ended = two_ranks(run + folder / "one", run + folder / name, &code_of_one);
    INFO(ended.err);
    CHECK(ended.code == 2);
    CHECK(code_of_one == 2);
    CHECK(count(ended.err, "tally-train: error:") == 1);
    CHECK(contains(ended.err, ": the dataset is 1 documents, "));
    CHECK(contains(ended.err, "let --data-path name the same dataset on every host"));
  }
}

TEST_CASE("ranks that start from different weights or steps do not train") {
  const Folder folder("weights");
  const auto train = [&](const std::string& name, const std::string& seed) {
    REQUIRE(tally_train(mock + "--train-iters 1 --seed " + seed + " --save-hf " +
                        folder / (name + ".hf") + " --save " + folder / name)
                .code == 0);
  };
  train("one", "1");
  train("two", "2");
  const std::string run =
      "--mock-data --device cpu --seq-length 32 --global-batch-size 4 --train-iters 2 ";
  int code_of_one = 0;
  Ended ended = two_ranks(run + "--load-hf " + folder / "one.hf",
                          run + "--load-hf " + folder / "two.hf", &code_of_one);
  INFO(ended.err);
  CHECK(ended.code == 5);
  CHECK(count(ended.err, "tally-train: error:") == 1);
  CHECK(contains(ended.err, "at the start: the weights of rank 1 differ from those of rank 0"));
  CHECK(!contains(ended.out, "consumed samples"));

  fs::create_directories(folder / "empty");
  ended = two_ranks(mock + "--train-iters 2 --load " + folder / "one",
                    mock + "--train-iters 2 --load " + folder / "empty", &code_of_one);
  INFO(ended.err);
  CHECK(ended.code == 2);
  CHECK(count(ended.err, "tally-train: error:") == 1);
  CHECK(contains(ended.err, "the number of steps done before (--load) is 0 on rank 1"));
}
