// The program of the Python tests of encoders' data. Prints one JSON object a line; an error is one
// line on standard error and exit code 2.
#include <fmt/format.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "src/data/bert_shards.h"
#include "src/data/prepare.h"
#include "src/data/wordpiece.h"

using namespace tally::train;
using Json = nlohmann::json;

namespace {

Json json_of(const EncoderSample& s) {
  return {{"ids", s.ids},
          {"types", s.token_types},
          {"positions", s.masked_positions},
          {"labels", s.masked_labels},
          {"next", s.next_sentence},
          {"label", s.label},
          {"start", s.start},
          {"end", s.end}};
}

void print(const Json& json) {
  fmt::print("{}\n", json.dump());
}

void print_samples(const EncoderSource& source, int64_t first, int64_t count) {
  print({{"samples", source.samples_per_epoch()},
         {"sequence", source.sequence()},
         {"max_predictions", source.max_predictions()}});
  EncoderSample sample;
  for (int64_t i = first; i < first + count; ++i) {
    source.sample(i, &sample);
    print(json_of(sample));
  }
}

// shards VOCAB fixed|dynamic shuffled|ordered SEED FIRST COUNT PATH...: COUNT -1: an epoch
void shards(const std::vector<std::string>& a) {
  const auto bert = make_wordpiece_tokenizer(a[0], true);
  BertShardOptions options;
  options.masking.vocabulary = bert->vocabulary();
  options.masking.tokens = bert->tokens();
  options.mode = a[1] == "dynamic" ? Masking::dynamic : Masking::fixed;
  options.shuffle = a[2] == "shuffled";
  options.seed = std::stoull(a[3]);
  std::vector<std::string> files;
  for (size_t i = 6; i < a.size(); ++i) {
    for (const std::string& file : bert_shard_files(a[i], true)) files.push_back(file);
  }
  const auto source = open_bert_shards(files, options);
  const int64_t count = std::stoll(a[5]);
  print_samples(*source, std::stoll(a[4]), count < 0 ? source->samples_per_epoch() : count);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string command = argc > 1 ? argv[1] : "";
  if (command == "prepare") return prepare_main(argc - 1, argv + 1);
  const std::vector<std::string> arguments(argv + std::min(argc, 2), argv + argc);
  try {
    if (command == "shards") {
      shards(arguments);
    } else {
      return 3;
    }
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  }
  return 0;
}
