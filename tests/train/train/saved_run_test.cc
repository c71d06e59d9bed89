#include "src/train/run/saved_run.h"

#include <doctest/doctest.h>

#include <functional>
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

Record run_of(const Config& c, const std::string& data = "2 samples") {
  Record record;
  record.config = c;
  record.data_content = data;
  return record;
}

const std::string saved_by_bf16 = R"({"model": {"padded_vocab_size": 384}, "precision": "bf16"})";

}  // namespace

TEST_CASE("what a checkpoint's configuration has, and what it may lack") {
  for (const char* other : {"", "null", "{}", "[1]", "{", R"({"precision": 3})", R"({"model": 1})",
                            R"({"training": [], "data": {"paths": null, "split": "1"}})"}) {
    CAPTURE(std::string(other));
    CHECK(differences(other, run_of(bytes_config()), true).empty());
  }
}

TEST_CASE("another precision is reported with the flag to set; another padding changes nothing") {
  Config c = bytes_config();
  CHECK(differences(saved_by_bf16, run_of(c), true).empty());
  c.model.padded_vocabulary = 257;
  CHECK(differences(saved_by_bf16, run_of(c), true).empty());
  c.precision = Precision::f32;
  for (const bool resumes : {true, false}) {
    const auto notes = differences(saved_by_bf16, run_of(c), resumes);
    REQUIRE(notes.size() == 1);
    CHECK(notes[0] ==
          "--precision: the checkpoint was trained in bf16, and this run trains in fp32: give "
          "--precision bf16 to train as before");
  }
}

TEST_CASE("settings that change a resumed training are named with both values") {
  Config first = bytes_config();
  first.global_batch = 2;
  first.optimizer.lr = 0.5;
  first.data.paths = {"a"};
  const std::string saved = configuration_json(run_of(first)).dump();
  Config c = first;
  CHECK(differences(saved, run_of(c), true).empty());
  c.train_iterations = 99;
  c.log_interval = 3;
  c.data.paths = {"elsewhere/a"};
  c.data.split = "9,1";
  c.data.weights = {1};
  CHECK(differences(saved, run_of(c), true).empty());
  CHECK(differences(saved, run_of(c, ""), true).empty());  // --skip-train reads none
  c.global_batch = 4;
  c.optimizer.lr = 0.25;
  c.optimizer.decay_style = "cosine";
  c.model.hidden_dropout = 0;
  c.seed += 1;
  const auto notes = differences(saved, run_of(c, "3 samples"), true);
  REQUIRE(notes.size() == 6);
  CHECK(notes[0] ==
        "--global-batch-size 4 differs from the checkpoint's 2: samples count for the schedule, so "
        "that the learning rate and the number of steps change");
  CHECK(notes[1] ==
        "--lr 0.25 differs from the checkpoint's 0.5: the learning rate does not follow "
        "the checkpoint's schedule");
  CHECK(notes[2].find("--lr-decay-style cosine differs from the checkpoint's") == 0);
  CHECK(notes[5] ==
        "the training data: 3 samples differs from the checkpoint's 2 samples: the samples are "
        "others, or in another order");
  CHECK(differences(saved, run_of(c, "3 samples"), false).empty());  // --finetune starts anew
}

TEST_CASE("each setting that changes the updates of a resumed training has its note") {
  Config first = bytes_config();
  first.model.set_kind("bert");
  first.model.task = Task::classification;
  first.fp8.format = Fp8Config::Format::e4m3;
  first.fp8.recipe = *find_fp8_recipe("rowwise");
  using Change = std::function<void(Config*)>;
  for (const auto& [name, change] : std::vector<std::pair<std::string, Change>>{
           {"--optimizer lamb", [](Config* c) { c->optimizer.kind = OptimizerKind::lamb; }},
           {"the weight decay at the start: 0.5",
            [](Config* c) { c->optimizer.weight_decay = 0.5; }},
           {"the weight decay at the end: 0.5",
            [](Config* c) { c->optimizer.end_weight_decay = 0.5; }},
           {"--micro-batch-size 9", [](Config* c) { c->micro_batch = 9; }},
           {"--loss-scale 8.0 differs from the checkpoint's 0 (adjusted):",
            [](Config* c) { c->loss_scale = 8; }},
           {"--loss-scale-window 7", [](Config* c) { c->loss_scale_window = 7; }},
           {"--hysteresis 9", [](Config* c) { c->hysteresis = 9; }},
           {"--min-loss-scale 4", [](Config* c) { c->min_loss_scale = 4; }},
           {"--fp8-recipe blockwise differs from the checkpoint's rowwise:",
            [](Config* c) { c->fp8.recipe = *find_fp8_recipe("blockwise"); }},
           {"--classifier-dropout 0.7", [](Config* c) { c->model.classifier_dropout = 0.7; }}}) {
    CAPTURE(name);
    Config c = first;
    change(&c);
    const auto notes = differences(configuration_json(run_of(first)).dump(), run_of(c), true);
    REQUIRE(notes.size() == 1);
    CHECK(notes[0].find(name) == 0);
  }
  // How the batch is divided matters where each micro batch has a mean of its own.
  for (const bool ends : {false, true})
    for (const bool per_token : {false, true}) {
      first = bytes_config();
      first.data.eod_mask_loss = ends;
      first.per_token_loss = per_token;
      first.model.hidden_dropout = first.model.attention_dropout = 0;
      Config c = first;
      c.micro_batch += 1;
      c.data_parallel += 1;
      CHECK(differences(configuration_json(run_of(first)).dump(), run_of(c), true).size() ==
            (ends && !per_token ? 2 : 0));
    }
}

TEST_CASE("another micro batch draws other masks of dropout, wherever there is one") {
  const auto changed = [](const Config& first) {
    Config c = first;
    c.micro_batch += 1;
    c.data_parallel += 1;
    return differences(configuration_json(run_of(first)).dump(), run_of(c), true);
  };
  Config c = bytes_config();
  c.model.set_kind("bert");
  c.model.task = Task::classification;
  c.model.hidden_dropout = c.model.attention_dropout = 0;
  c.model.classifier_dropout = 0;
  CHECK(changed(c).empty());
  for (const auto place : {&ModelConfig::hidden_dropout, &ModelConfig::attention_dropout}) {
    Config dropped = c;
    dropped.model.*place = 0.1;
    CHECK(changed(dropped).size() == 1);
  }
  c.model.classifier_dropout = 0.1;
  const std::vector<std::string> notes = changed(c);
  REQUIRE(notes.size() == 1);
  CHECK(notes[0] ==
        "--micro-batch-size 2 differs from the checkpoint's 1: the masks of dropout are drawn for "
        "each micro batch, so that the updates are others");
  // Where each micro batch has a mean of its own, that is the reason, of this flag and of replicas.
  Config ends = bytes_config();
  ends.data.eod_mask_loss = true;
  REQUIRE(ends.model.hidden_dropout > 0);
  REQUIRE(changed(ends).size() == 2);
  for (const std::string& note : changed(ends)) CHECK(note.find("with --eod-mask-loss each") > 0);
}

TEST_CASE("the dropout of a head is compared where the task has one") {
  Record record;
  record.config = bytes_config();
  record.config.model.set_kind("bert");
  record.config.model.task = Task::classification;
  const std::string saved = configuration_json(record).dump();
  const auto changed = [&](const auto& change) {
    Record run = record;
    change(&run.config.model);
    std::string flags;
    for (const std::string& note : differences(saved, run, true))
      flags += note.substr(0, note.find(' ')) + " ";
    return flags;
  };
  CHECK(changed([](ModelConfig*) {}).empty());
  CHECK(changed([](ModelConfig* m) { m->classifier_dropout = 0.5; }) == "--classifier-dropout ");
  CHECK(changed([](ModelConfig* m) { m->hidden_dropout = 0; }) ==
        "--hidden-dropout --classifier-dropout ");
  // A pre-training has no such head: what version 0.2.0 wrote of it is no difference.
  record.config.model.task = Task::pretraining;
  nlohmann::json earlier = configuration_json(record);
  earlier["encoder"]["classifier_dropout"] = 0.3;
  CHECK(differences(earlier.dump(), record, true).empty());
}
