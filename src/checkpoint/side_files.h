// The files beside a model's weights: what its tokens are, and what it was told when it was made.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "src/config/config.h"

namespace tally::train {

// Read when a run begins and kept, so that what happens to them meanwhile costs no result.
struct SideFiles {
  // Name to bytes: vocab.json and merges.txt, or tokenizer.json; tokenizer_config.json,
  // special_tokens_map.json, generation_config.json.
  std::map<std::string, std::string> files;
  std::string config;  // config.json of the folder that the model comes from; empty: none
  int64_t end_of_text =
      -1;  // the token that ends a document, where the tokenizer's files are known
};

// `source`: the folder that the model comes from, or empty. The tokenizer's files are
// data.vocab_file and data.merge_file, which must be a tokenizer's; where there is no
// tokenizer_config.json beside them, one is made. Throws std::runtime_error with one sentence.
SideFiles read_side_files(const ModelConfig& model, const DataConfig& data,
                          const std::string& source);

}  // namespace tally::train
