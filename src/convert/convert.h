// Checkpoints of PyTorch and TensorFlow to a folder in Hugging Face's layout, which --load-hf reads.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tally::train {

struct ConvertOptions {
  // PyTorch: a .bin, .pt or .pth file, a pytorch_model.bin.index.json, or a folder that has
  // pytorch_model.bin or that index. TensorFlow: the prefix of a checkpoint, its .index file, or a
  // folder that has one .index file.
  std::string input;
  std::string output;  // a folder that does not exist yet
  std::string config;  // config.json or bert_config.json; empty: the one beside the input
};

struct ConvertSummary {
  size_t tensors = 0;
  uint64_t bytes = 0;                 // of model.safetensors
  std::vector<std::string> left_out;  // tensors that are no weights
};

// Writes model.safetensors, config.json and copies of the tokenizer's files that lie beside the
// input. The folder appears whole or not at all. Everything is checked before anything is written.
// Throws BadInput for what the user gave, otherwise std::runtime_error, with one sentence.
ConvertSummary convert(const ConvertOptions& options);

// The command line of `tally-train convert`. Returns the exit code.
int convert_main(int argc, char** argv);

}  // namespace tally::train
