// Values that the journal kept of outputs that are gone or have changed. Private to results/.
#pragma once

#include <optional>
#include <set>
#include <vector>

#include "engine/base/status.h"
#include "engine/journal/journal.h"
#include "engine/results/read/match_statistics.h"
#include "engine/results/read/workpackage_view.h"

namespace tally {

// Sets `kept` of the views of these workpackages, as far as there is something.
Status take_kept(const Journal& journal, const std::set<int>& ids,
                 std::vector<WorkpackageView>& views);

// Returns the matches of the pattern that it kept under this analyse, or nothing where it kept
// none, or matches under another definition or type. `row`: those of that row of `rows`; -1: all.
std::optional<Statistics> kept_statistics(const WorkpackageView::Kept& kept,
                                          const Benchmark& benchmark, const Analyser& analyser,
                                          const Analyse& analyse, const Pattern& pattern,
                                          int row = -1);

}  // namespace tally
