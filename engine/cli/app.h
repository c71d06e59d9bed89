// The command line: words to commands.
#pragma once

namespace tally {

// Parses the arguments, runs the command and returns the exit code.
int run_application(int argc, char** argv);

}  // namespace tally
