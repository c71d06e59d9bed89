// The commands that print text and do not train. They need no LibTorch.
#pragma once

#include <optional>

#include "src/convert/convert.h"

namespace tally::train {

// Runs --version, reference, prepare, tokenize, convert, --plan and --help, and reports an unknown
// or missing command. Returns the exit code; nothing when the command is to train or to evaluate.
// `facts`: what convert asks of a model; empty in a build without LibTorch.
std::optional<int> run_text_command(int argc, char** argv, const ModelFacts& facts);

}  // namespace tally::train
