// What a person reads before and after a run, and tables in JUBE's manner.
#pragma once

#include <string>
#include <vector>

#include "engine/cli/commands.h"
#include "engine/execute/execute.h"
#include "engine/execute/files/run_directory.h"
#include "engine/journal/journal.h"
#include "engine/workflow/workflow.h"

namespace tally {

// A line of #, "# text" lines, a line of #.
std::string boxed(const std::vector<std::string>& lines);
// Cells to the right, a rule below the first row, every line with `indent` before it.
std::string bordered(const std::vector<std::vector<std::string>>& rows, const std::string& indent);

void print_banner(const Benchmark& benchmark, const RunRecord& run, const RunDirectory& directory);
// The steps with their counts, why workpackages failed and where that is written, and what to do
// next.
// A status: the journal cannot be read.
Status print_summary(const Invocation& invocation, const Benchmark& benchmark,
                     const Journal& journal, const RunDirectory& directory,
                     const RunSummary& summary);

}  // namespace tally
