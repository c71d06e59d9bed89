// Hugging Face's config.json of GPT-2, Llama, BERT and DistilBERT.
#pragma once

#include <string>
#include <vector>

#include "src/checkpoint/side_files.h"
#include "src/config/config.h"

namespace tally::train {

// The text of a config.json that transformers' GPT2LMHeadModel or LlamaForCausalLM reads, or the
// model of an encoder and its task (encoder_config.h). A GPT with rotary positions, which GPT-2
// does not have, is written under the model type "tally_gpt", which transformers does not claim.
// Fields of a folder's config.json that training does not change stay (special tokens, its
// activation's name, fields of others).
std::string model_config_json(const ModelConfig& config, DType weights, const SideFiles& side = {});

// The names of a classifier's classes in PATH, as read_class_names() of encoder_config.h.
std::vector<std::string> read_class_names(const std::string& path);

// Reads PATH (a config.json, or the directory that has one). Fields of ModelConfig that the file
// does not set keep their values in `defaults`; padded_vocabulary becomes the vocabulary rounded up
// to a multiple of `vocabulary_multiple`. Throws std::runtime_error with one sentence when the file
// is missing, malformed, or describes a model that is not supported (another type, activation or
// attention). `dropout`: the model's dropout is used, so it must be one that is supported.
ModelConfig read_model_config(const std::string& path, const ModelConfig& defaults = {},
                              int64_t vocabulary_multiple = 128, bool dropout = true);

}  // namespace tally::train
