// The typed tables of one or several runs, for commands that show them in forms of their own.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "engine/cli/results.h"

namespace tally {

// A table of the workflow, and its rows. Several runs are merged and have the column "id".
struct RunTable {
  const Result* result = nullptr;
  const Table* table = nullptr;
  RenderedResult rendered;
};

// Opens the runs with these ids in each of the folders, as `result` finds them. Returns false, after
// printing why, if one cannot be opened.
bool open_runs(const Invocation& invocation, const std::vector<std::string>& folders,
               const std::vector<std::string>& ids, std::vector<OpenRun>* runs);

// Reads all tables of the runs, with the definitions of the last run. Prints problems. Returns
// false if the output of a run cannot be read.
bool tables_of_runs(const Invocation& invocation, const std::vector<OpenRun>& runs,
                    std::vector<RunTable>* tables);

}  // namespace tally
