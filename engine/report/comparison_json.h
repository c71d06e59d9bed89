// A comparison of runs as JSON, for programs.
#pragma once

#include <string>
#include <vector>

#include "engine/report/json.h"
#include "engine/results/judge/compare.h"

namespace tally {

// A fact of the machine or of the software that differs: name, base, other.
struct ReportedDifference {
  std::string name, base, other;
};

// The parts of a comparison beside its rows.
struct ReportedComparison {
  std::vector<ReportedRun> runs;
  std::vector<ReportedDifference> differences;
  std::vector<std::string> notes;
};

// {"format": "tally-comparison", "version": 1, ...}: the runs, in what their machines differ, and a
// row for each metric of each pair of rows. Changes are fractions. null: there is no such number.
std::string comparison_json(const RunComparison& comparison, const CompareOptions& options,
                            const ReportedComparison& about, const std::string& version);

}  // namespace tally
