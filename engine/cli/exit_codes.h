// The exit codes of all commands. `tally help exit-codes` prints this table.
#pragma once

#include <string>

namespace tally {

constexpr int kFine = 0;
constexpr int kFailed = 1;
constexpr int kBadInput = 2;
// A reference is missed, or its value is missing. Takes precedence over kFailed.
constexpr int kReferenceMissed = 5;

// Returns "0 all went well, 1 something failed, ...".
std::string exit_codes_in_short();
// Returns one line for each exit code, with its causes.
std::string exit_codes_in_full();

}  // namespace tally
