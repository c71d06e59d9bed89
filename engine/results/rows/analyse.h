// Reads the output of finished workpackages with the benchmark's patterns.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "engine/results/read/views.h"
#include "engine/results/read/workpackage_view.h"
#include "engine/results/rows/records.h"
#include "engine/workflow/workflow.h"
#include "engine/workpackage/measured.h"

namespace tally {

// The values found in the files of one workpackage, as in JUBE's analyse.xml. With `reduce`, the
// values of all workpackages that differ only in their iteration, under the lowest id.
struct WorkpackageResult {
  int id = 0;
  std::string step;
  std::vector<std::pair<std::string, Value>> values;  // patterns and their statistics, in order
};

// Returns the records of one analyser, in the order of workpackage ids. There is one record for
// each workpackage of an analysed step that no other analysed workpackage depends on. The values of
// its parents' files are merged in; its own values take precedence. With `reduce`, workpackages
// that differ only in their iteration make one record, shown under the lowest id. Files that match
// a glob are read in natural order (f2 before f10).
//
// A workpackage whose files are not what they were at its end is marked, and read once more: a note
// in the diagnostics, and in the records.
//
// Problems go to the diagnostics, each once with a count: "cannot be represented as a int", a
// missing file, an unreadable pattern. `each`, if given, gets the values of every workpackage's own
// files. `samples`, if given and if an output asks for statistics of repeats, gets what each
// workpackage printed.
Records analyse(const ResultContext& context, const Analyser& analyser,
                const std::vector<WorkpackageView>& workpackages,
                std::vector<WorkpackageResult>* each = nullptr,
                std::vector<Sample>* samples = nullptr);

// Returns the records of one result: its analysers' rows over these workpackages, one analyser
// after the other. `samples`: as for analyse().
Records result_records(const ResultContext& context, const Result& result,
                       const std::vector<WorkpackageView>& views,
                       std::vector<Sample>* samples = nullptr);
// Patterns without a value: a warning, and an error for one that has none in the whole run.
// `of_run`: false for the logs that a person names, which need not have everything.
void report_unmatched(const Records& records, bool of_run, Diagnostics& diagnostics);

}  // namespace tally
