// Checkpoints of PyTorch and TensorFlow to a folder in Hugging Face's format, which --load-hf
// reads.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
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

// Names of a model's tensors in Hugging Face's files, each with the model's prefix and without, and
// the name without it.
using TensorNames = std::map<std::string, std::string>;

// Facts about the models, which the program gives, because they need LibTorch.
struct ModelFacts {
  std::function<TensorNames(const ModelConfig& config)> tensor_names;
  // Throws std::runtime_error with one sentence where the weights in a file do not fit the model.
  // Returns the parameters of a head that the file does not have.
  std::function<std::vector<std::string>(const std::string& path, const ModelConfig& config)> check;
};

struct ConvertSummary {
  size_t tensors = 0;
  uint64_t bytes = 0;                 // size of model.safetensors
  std::vector<std::string> left_out;  // tensors that are not weights
};

// Writes model.safetensors, config.json and copies of the tokenizer's files that lie beside the
// input. The folder appears whole or not at all, and only with all weights of the model.
// Throws BadInput for what the user gave, otherwise std::runtime_error, with one sentence.
ConvertSummary convert(const ConvertOptions& options, const ModelFacts& facts);

// The command line of `tally-train convert`. Returns the exit code.
int convert_main(int argc, char** argv, const ModelFacts& facts);
// The command's flags as data.
CommandSpec convert_spec();

}  // namespace tally::train
