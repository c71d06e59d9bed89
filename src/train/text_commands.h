// The commands that print a text and train nothing. They need no LibTorch.
#pragma once

#include <optional>

namespace tally::train {

// Carries out --version, reference, prepare and --help, and says what is wrong when there is no
// command. Returns the exit code; nothing when the command is to train or to evaluate.
std::optional<int> run_text_command(int argc, char** argv);

}  // namespace tally::train
