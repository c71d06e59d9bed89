// Hugging Face's config.json of Llama. Private to checkpoint/; model_config_file.h has the rules.
#pragma once

#include "src/checkpoint/config_reader.h"
#include "src/config/config.h"

namespace tally::train {

// Sets what LlamaForCausalLM reads of the model's own fields in `json`.
void write_llama_config(const ModelConfig& config, ConfigJson* json);

// The model's own fields, but not the padded vocabulary. Rotary positions that are scaled for longer
// contexts, biases and other activations are not supported.
ModelConfig read_llama_config(const ConfigReader& in, const ModelConfig& defaults);

}  // namespace tally::train
