// A trained model as a folder that transformers reads.
#pragma once

#include <string>

#include "src/checkpoint/model_weights.h"
#include "src/config/config.h"
#include "src/ops/stream.h"

namespace tally::train {

// Whether save_hugging_face() may and can write to `directory`: it does not exist, is empty, or
// holds a model (config.json) that is to be replaced, and something can be written there (which is
// tried, and leaves nothing). Throws std::runtime_error with one sentence.
void check_hugging_face_target(const std::string& directory);

// Writes to `directory`, which is made when missing:
//   model.safetensors, config.json    always
//   vocab.json, merges.txt            copies of data.vocab_file and merge_file, when they are known
//   tokenizer_config.json             with them; a copy of the one in `source` where there is one
//   tokenizer.json, special_tokens_map.json, generation_config.json    copies, when `source` has
//   them
// `source`: the folder that the model came from (--load-hf), or empty. A folder that is new appears
// whole; in one that is there the files are replaced one by one, the weights last. Throws
// std::runtime_error with one sentence.
void save_hugging_face(const std::string& directory, const ModelConfig& config,
                       const DataConfig& data, const std::string& source,
                       const ParameterState& parameters, Stream& stream);

}  // namespace tally::train
