// `tally-train tokenize`: a text's tokens, to look at.
#pragma once

#include "engine/base/command_spec.h"

namespace tally::train {

// The command line (argv[0] is the program's name). Prints the tokens of each line of the input on
// a line of standard output: numbers, or with --pieces the pieces of text. 0: done; 1: the output
// could not be written; 2: bad usage or bad input.
int tokenize_main(int argc, char** argv);
// The command's flags as data.
CommandSpec tokenize_spec(const KnownValues& known);

}  // namespace tally::train
