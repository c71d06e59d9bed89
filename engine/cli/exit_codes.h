// The exit codes of every command, in one place: `tally help exit-codes` prints this table.
#pragma once

#include <string>

namespace tally {

constexpr int kFine = 0;
constexpr int kFailed = 1;
constexpr int kBadInput = 2;
constexpr int kReferenceMissed = 5;  // or had no value to compare; before kFailed

// "0 all went well, 1 something failed, ..."
std::string exit_codes_in_short();
// A line each, with what leads to it.
std::string exit_codes_in_full();

}  // namespace tally
