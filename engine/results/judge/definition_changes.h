// The differences between the definitions of two runs.
#pragma once

#include <string>
#include <vector>

#include "engine/workflow/workflow.h"

namespace tally {

// The names of what two runs compute the rows of a table differently: "filter", "column 'x'",
// "pattern 'rate'", "analyser 'a'". Columns that only one of the tables has are not named: they can
// be seen.
std::vector<std::string> table_changes(const Benchmark& before, const Table& table_before,
                                       const Benchmark& after, const Table& table_after);

struct WorkChange {
  std::string name;           // "parameter 'steps'", "the commands of step 'run'"
  std::string before, after;  // short texts; of a secret "(secret)"
};

// The changes that make two runs do different work: parameters by which rows are not told apart,
// commands, resources and environments of steps, and substitutions.
std::vector<WorkChange> work_changes(const Benchmark& before, const Benchmark& after);

// A column whose values have another unit in the other benchmark. Empty: all have the same, as far
// as both benchmarks name one.
struct UnitChange {
  std::string name, before, after;
};
std::vector<UnitChange> unit_changes(const Benchmark& before, const Benchmark& after,
                                     const Column& column);

}  // namespace tally
