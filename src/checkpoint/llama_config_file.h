// Hugging Face's config.json of models with Llama's blocks: Llama, Mistral without windows, Qwen 2
// (biases of Q, K and V) and Qwen 3 (QK norm). Private to checkpoint/; model_config_file.h has the
// rules.
#pragma once

#include <string>

#include "src/checkpoint/config_reader.h"
#include "src/config/config.h"

namespace tally::train {

// Whether it is the model_type of one of these.
bool is_llama_type(const std::string& type);

// Sets what transformers' classes read of the model's own fields in `json`. A type of these that
// the blocks fit stays.
void write_llama_config(const ModelConfig& config, ConfigJson* json);

// The model's own fields, but not the padded vocabulary. Windows, other biases, other activations
// and rotary positions that are scaled in another way than Llama 3.1's are not supported.
ModelConfig read_llama_config(const ConfigReader& in, const ModelConfig& defaults);

}  // namespace tally::train
