// The files next to a model's weights: its tokenizer, and what was recorded when it was made.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "src/config/config.h"

namespace tally::train {

// All names that files of the models' tokenizers have in transformers' folders.
inline constexpr const char* tokenizer_files[] = {
    "vocab.txt",         "vocab.json",          "merges.txt",
    "tokenizer.json",    "tokenizer.model",     "tokenizer_config.json",
    "added_tokens.json", "chat_template.jinja", "special_tokens_map.json"};

// The files are read when a run begins and kept, so that later changes to them cannot cost a
// result.
struct SideFiles {
  // Name to bytes: those of tokenizer_files that there are, and generation_config.json.
  std::map<std::string, std::string> files;
  std::string config;  // config.json of the folder that the model comes from; empty: none
  // The names of the first classes, where training had names; empty: those of `config` stay.
  std::vector<std::string> classes;
  int64_t end_of_text =
      -1;  // the token that ends a document, where the tokenizer's files are known
};

// `source`: the folder that the model comes from, or empty. The tokenizer's files are
// data.vocab_file and data.merge_file, and those beside them; tokenizer_config.json is made where
// there is none; BERT's states the rules of words that were used. Throws
// std::runtime_error with one sentence when they are not a tokenizer's.
SideFiles read_side_files(const ModelConfig& model, const DataConfig& data,
                          const std::string& source);

}  // namespace tally::train
