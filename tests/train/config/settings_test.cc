// The table of settings: what every row has, and which keys the record has.
#include "src/config/settings.h"

#include <doctest/doctest.h>

#include <map>
#include <set>
#include <sstream>

#include "src/config/flags.h"
#include "tests/train/config/parse.h"

using namespace tally::train;

namespace {

std::vector<std::string> keys_of(const Config& config) {
  std::vector<std::string> keys;
  for (const Setting& row : recorded_settings(config)) keys.push_back(row.key);
  return keys;
}

std::map<std::string, nlohmann::ordered_json> values_of(const Config& config) {
  std::map<std::string, nlohmann::ordered_json> values;
  for (const Setting& row : recorded_settings(config)) values[row.key] = row.value;
  return values;
}

}  // namespace

TEST_CASE("every row of the table of settings is whole") {
  Flags flags;
  std::set<std::string> names, keys;
  for (const Setting& row : settings(&flags)) {
    CAPTURE(row.flags + " " + row.key);
    CHECK_FALSE(row.label.empty());
    if (row.form == Setting::Form::none) CHECK_FALSE(row.key.empty());
    if (!row.key.empty()) CHECK(keys.insert(row.key).second);
    if (row.form == Setting::Form::none) continue;
    CHECK_FALSE(row.group.empty());
    CHECK_FALSE(row.help.empty());
    CHECK(row.store);
    CHECK(row.type.empty() == (row.form == Setting::Form::toggle));
    std::istringstream spellings(row.flags);
    for (std::string name; std::getline(spellings, name, ',');) {
      CHECK(name.rfind("--", 0) == 0);
      CHECK(names.insert(name).second);
    }
  }
  CHECK(names.size() > 200);
  CHECK(keys.size() > 110);
}

TEST_CASE("the record has the same keys for every run") {
  const std::vector<std::string> keys = keys_of(parse(base));
  for (const char* other :
       {"--model llama-1b", "--model bert-base", "--model distilbert --task classify --bf16",
        "--rampup-batch-size 2 2 8 --global-batch-size 8"}) {
    CAPTURE(std::string(other));
    const bool ramp = std::string(other).find("rampup") != std::string::npos;
    CHECK(keys_of(parse((ramp ? "--mock-data --train-samples 80 " : base) + other)) == keys);
  }
  CHECK(keys_of(Config()) == keys);
}

// The flag, its key and the value that the record then has: one row of each kind.
TEST_CASE("the record has what the flags say") {
  const auto recorded = [](const std::string& given, const char* key) {
    return values_of(parse(base + given)).at(key).dump();
  };
  CHECK(recorded("--log-interval 7", "log_interval") == "7");
  CHECK(recorded("--lr 2e-4", "training.lr") == "0.0002");
  CHECK(recorded("--optimizer AdamW", "training.optimizer") == "\"adam\"");
  CHECK(recorded("--precision bfloat16", "precision") == "\"bf16\"");
  CHECK(recorded("--no-cuda-graph", "cuda_graph") == "false");
  CHECK(recorded("--no-fusion head,gelu", "no_fusion") == R"(["gelu","head"])");
  CHECK(recorded("", "save") == "null");
  CHECK(recorded("--save there", "save") == "\"there\"");
  CHECK(recorded("--lr-warmup-iters 2", "training.lr_warmup_samples") == "2");
  CHECK(recorded("--num-layers 3", "model.num_layers") == "3");
  CHECK(recorded("", "encoder.task") == "null");
  CHECK(recorded("--model bert-base", "encoder.task") == "\"pretrain\"");
  CHECK(recorded("--ddp-bucket-size 5", "parallel.ddp_bucket_size") == "5");
}

TEST_CASE("a wrong value is refused with the list of those that are known") {
  CHECK(error_of(base + "--log-format json") ==
        "--log-format: 'json' is not known: jupiter, megatron");
  CHECK(error_of(base + "--precision fp8") ==
        "--precision: 'fp8' is not known: fp32, tf32x3, tf32, bf16, fp16, fp64");
  std::string fusions;
  for (const auto& [name, on] : fusion_names) fusions += std::string(name) + ", ";
  CHECK(error_of(base + "--no-fusion head,tail") ==
        "--no-fusion: 'tail' is not known: " + fusions + "all");
  CHECK(error_of(base + "--seed -1") == "--seed: -1 is too small: at least 0");
}
