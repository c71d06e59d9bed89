// The tables of a workflow, without the program and without a run: its workpackages are planned as a
// run would plan them, a shell runs their commands in a folder each, and the results are made of
// what these left. One that leaves a file `busy` or `throttled` was disturbed.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tests/support/shell.h"

namespace tally::testing {

// The text of `b.yaml`. `out`: the tables. `err`: notes, missed references and diagnostics, each as
// the program prints it. `code`: as the program's.
Ran printed_tables(const std::string& workflow);

// What each workpackage printed, in their order.
std::vector<std::string> printed_outputs(const std::string& workflow);

}  // namespace tally::testing
