// Shared parts of the commands on data (`tally-train prepare`, `tally-train tokenize`).
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "src/data/tokenizers/tokenizer.h"

namespace tally::train {

struct TokenizerFlags {
  std::string type = "GPT2BPETokenizer", vocab_file, merge_file;
};

void declare_tokenizer_flags(CLI::App* app, TokenizerFlags* flags);
// Throws BadInput with one sentence.
std::unique_ptr<Tokenizer> tokenizer_of(const TokenizerFlags& flags);

// A missing input is a mistake in the command, so it is found before anything is written. Throws
// BadInput.
void check_inputs(const std::vector<std::string>& inputs);

// Parses the flags of `app`, whose name begins messages, and does the work. Returns the exit code:
// 0 done; 1 another error; 2 bad usage or BadInput.
int run_data_command(CLI::App* app, int argc, char** argv, const std::function<void()>& work);

}  // namespace tally::train
