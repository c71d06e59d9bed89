#include "src/train/saved_run.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "src/measure/record.h"

using namespace tally::train;

namespace {

// A run with the bytes' vocabulary of 257, padded to a multiple of 128.
Config bytes_config() {
  Config c;
  c.model.vocabulary = 257;
  c.model.padded_vocabulary = 384;
  c.precision = Precision::bf16;
  return c;
}

const std::string saved_by_bf16 = R"({"model": {"padded_vocab_size": 384}, "precision": "bf16"})";

}  // namespace

TEST_CASE("what a checkpoint's configuration has, and what it may lack") {
  for (const char* other : {"", "null", "{}", "[1]", "{", R"({"precision": 3})", R"({"model": 1})",
                            R"({"training": [], "data": {"paths": null}})"}) {
    CAPTURE(std::string(other));
    Config c = bytes_config();
    const std::vector<std::string> notes = differences(other, c, true);
    CHECK(notes.size() == (std::string(other).find("paths") == std::string::npos ? 0 : 1));
  }
}

TEST_CASE("another precision is reported with the flag to set; another padding changes nothing") {
  Config c = bytes_config();
  CHECK(differences(saved_by_bf16, c, true).empty());
  c.model.padded_vocabulary = 257;
  CHECK(differences(saved_by_bf16, c, true).empty());
  c.precision = Precision::f32;
  for (const bool resumes : {true, false}) {
    const auto notes = differences(saved_by_bf16, c, resumes);
    REQUIRE(notes.size() == 1);
    CHECK(notes[0] ==
          "--precision: the checkpoint was trained in bf16, and this run trains in fp32: give "
          "--precision bf16 to train as before");
  }
}

TEST_CASE("settings that change a resumed training are named with both values") {
  Record record;
  record.config = bytes_config();
  record.config.global_batch = 2;
  record.config.optimizer.lr = 0.5;
  record.config.data.paths = {"a"};
  const std::string saved = configuration_json(record).dump();
  Config c = record.config;
  CHECK(differences(saved, c, true).empty());
  c.micro_batch = 7;
  c.train_iterations = 99;
  c.log_interval = 3;
  CHECK(differences(saved, c, true).empty());
  c.global_batch = 4;
  c.data.paths = {"b", "c"};
  c.optimizer.lr = 0.25;
  c.optimizer.decay_style = "cosine";
  c.model.hidden_dropout = 0;
  c.seed += 1;
  const auto notes = differences(saved, c, true);
  REQUIRE(notes.size() == 6);
  CHECK(notes[0] ==
        "--global-batch-size 4 differs from the checkpoint's 2: samples count for the schedule, so "
        "that the learning rate and the number of steps change");
  CHECK(notes[1] ==
        "--lr 0.25 differs from the checkpoint's 0.5: the learning rate does not follow "
        "the checkpoint's schedule");
  CHECK(notes[2].find("--lr-decay-style cosine differs from the checkpoint's") == 0);
  CHECK(notes[5] ==
        "--data-path [\"b\",\"c\"] differs from the checkpoint's [\"a\"]: the samples "
        "are others");
  CHECK(differences(saved, c, false).empty());  // --finetune starts anew
}
