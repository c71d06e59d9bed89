// Hugging Face's config.json of GPT-2.
#pragma once

#include <string>

#include "src/config/config.h"

namespace tally::train {

// The text of a config.json that transformers' GPT2LMHeadModel reads. Rotary positions, which GPT-2
// does not have, are written under the model type "tally_gpt", which transformers does not claim.
std::string model_config_json(const ModelConfig& config, DType weights);

// Reads PATH (a config.json, or the directory that has one). Fields of ModelConfig that the file
// does not speak of keep their values in `defaults`; padded_vocabulary becomes the vocabulary
// rounded up to a multiple of `vocabulary_multiple`. Throws std::runtime_error with one sentence
// when the file is missing, malformed, or describes a model that is not computed here (another
// type, activation or attention).
ModelConfig read_model_config(const std::string& path, const ModelConfig& defaults = {},
                              int64_t vocabulary_multiple = 128);

}  // namespace tally::train
