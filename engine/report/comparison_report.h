// Renders a comparison of runs as a table.
#pragma once

#include <string>
#include <vector>

#include "engine/report/grid.h"
#include "engine/report/json.h"
#include "engine/results/judge/compare.h"

namespace tally {

const char* verdict_word(statistics::Verdict verdict);
// One row for each compared row and metric. Changes and their bounds are in percent. `needed n` is
// there if a row is unclear: how many repeats a side would decide it.
Grid comparison_grid(const RunComparison& comparison, const CompareOptions& options);
// Beside a table, how many repeats would decide a row is a column of it.
enum class NotesFor { table, document };
// "row 3 (n=4): unclear: 3 and 3 repeats; about 4 a side would decide", for each unclear row, and
// for those that failed. At most `most` of them; `*left_out`: how many more there are.
std::vector<std::string> comparison_notes(const RunComparison& comparison, NotesFor form,
                                          size_t most, size_t* left_out);

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
