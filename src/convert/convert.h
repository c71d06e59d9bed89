// Checkpoints of PyTorch and TensorFlow to a folder in Hugging Face's layout, which --load-hf reads.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "engine/base/command_spec.h"
#include "src/config/config.h"

namespace tally::train {

struct ConvertOptions {
  // PyTorch: a .bin, .pt or .pth file, a pytorch_model.bin.index.json, or a folder that has
  // pytorch_model.bin or that index. TensorFlow: the prefix of a checkpoint, its .index file, or a
  // folder that has one .index file.
  std::string input;
  std::string output;  // a folder that does not exist yet
  std::string config;  // config.json or bert_config.json; empty: the one beside the input
};

// Throws std::runtime_error with one sentence where the weights in a file do not fit the model of
// `config`. Returns whether it has weights of such a model at all. The program gives it, because it
// knows the models' parameters and needs LibTorch for them.
using WeightsCheck = std::function<bool(const std::string& path, const ModelConfig& config)>;

struct ConvertSummary {
  size_t tensors = 0;
  uint64_t bytes = 0;                 // of model.safetensors
  std::vector<std::string> left_out;  // tensors that are no weights
  bool of_model = true;               // false: no tensor has the name of a weight of the model
};

// Writes model.safetensors, config.json and copies of the tokenizer's files that lie beside the
// input. The folder appears whole or not at all: `check` (null: none) looks at it before it appears.
// Throws BadInput for what the user gave, otherwise std::runtime_error, with one sentence.
ConvertSummary convert(const ConvertOptions& options, const WeightsCheck& check);

// The command line of `tally-train convert`. Returns the exit code.
int convert_main(int argc, char** argv, const WeightsCheck& check);
// Its flags as data.
CommandSpec convert_spec();

}  // namespace tally::train
