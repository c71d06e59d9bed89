#include "engine/results/rows/missing_rows.h"

#include <fmt/format.h>

#include <algorithm>

namespace tally {

void note_missing_rows(const Benchmark& benchmark, const Analyser& analyser, const Groups& groups,
                       Records& records) {
  if (benchmark.as_jube) return;
  const auto& analysed = analyser.analyse;
  for (const WorkpackageView* workpackage : groups.by_id()) {
    if (workpackage->state != State::failed && workpackage->state != State::lost) continue;
    const std::string& failed = workpackage->step;
    if (groups.has_row(*workpackage)) continue;
    const auto after = std::find_if(analysed.begin(), analysed.end(), [&](const Analyse& analyse) {
      return depends_on(benchmark, analyse.step.value, failed);
    });
    if (after == analysed.end()) continue;
    // Other repeats of it may have led to the row.
    const bool repeated = groups.planned_repeats(*workpackage).count > 1;
    for (const std::string& note : workpackage->notes) {
      records.notes.push_back(fmt::format("{}; {} of step '{}' are missing", note,
                                          repeated ? "repeats or rows" : "rows",
                                          after->step.value));
      records.missing_rows.push_back(records.notes.back());
    }
  }
}

}  // namespace tally
