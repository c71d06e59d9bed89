// Texts that a person reads before and after a run, and tables in JUBE's style.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "engine/cli/commands.h"
#include "engine/execute/execute.h"
#include "engine/journal/journal.h"
#include "engine/run/run_directory.h"
#include "engine/workflow/workflow.h"

namespace tally {

// Returns a line of #, "# text" lines, and a line of #.
std::string boxed(const std::vector<std::string>& lines);
// Returns a table with cells aligned right and a rule below the first row. Every line starts with
// `indent`.
std::string bordered(const std::vector<std::vector<std::string>>& rows, const std::string& indent);

// Says what begins and where; by JUBE's name with JUBE's banner.
void print_banner(const Settings& settings, const Run& run);
// Prints the steps with their counts, the reasons and places of failures, and what to do next. An
// error status means that the journal cannot be read.
Status print_summary(const Settings& settings, const Run& run, const RunSummary& summary);

struct EqualFailures {
  std::vector<const Journal::Stored*> all;  // never empty
};

// In the order of the first of each. `words`: what a failure is called; without it
// message_in_short(). `put_off`: workpackages that another host shall do are among them.
std::vector<EqualFailures> equal_failures(
    const std::vector<Journal::Stored>& workpackages,
    const std::function<std::string(const Journal::Stored&)>& words = {}, bool put_off = false);

// The parameters that the failures share and other workpackages of their step have otherwise. They
// most often say what is wrong.
std::vector<std::pair<std::string, std::string>> shared_parameters(
    const EqualFailures& failure, const std::vector<Journal::Stored>& workpackages);

}  // namespace tally
