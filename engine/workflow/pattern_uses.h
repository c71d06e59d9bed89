// Which pattern sets an analyser uses, and what its `rows` says of them.
#pragma once

#include <set>
#include <vector>

#include "engine/workflow/workflow.h"

namespace tally {

// The sets that the analyser uses, and those that its files alone use, in the order of the file.
std::vector<Text> used_pattern_sets(const Analyser& analyser);
// The patterns whose matches may belong to a row: those of the sets that define one of `rows`.
std::set<const Pattern*> patterns_of_rows(const Benchmark& benchmark, const Analyser& analyser);

}  // namespace tally
