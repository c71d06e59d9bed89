// tally-train-help: the commands of tally-train that need no LibTorch (early_help.cc starts it).
#include <cstdio>
#include <exception>

#include "src/data/text/exit_codes.h"
#include "src/train/commands/text_commands.h"

int main(int argc, char** argv) {
  try {
    return tally::train::run_text_command(argc, argv, {}).value_or(tally::train::exit_bad_input);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "tally-train: error: %s\n", e.what());
    return tally::train::exit_error;
  }
}
