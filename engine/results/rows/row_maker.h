// Makes the rows of an analyser from the matches in the files of its groups. Private to results/.
#pragma once

#include "engine/base/diagnostics.h"
#include "engine/expand/evaluator.h"
#include "engine/results/rows/analysed_patterns.h"
#include "engine/results/rows/groups.h"
#include "engine/results/rows/records.h"
#include "engine/results/rows/used_names.h"
#include "engine/workflow/workflow.h"

namespace tally {

// The sources of rows. The groups' files have been read.
struct RowSources {
  const Benchmark& benchmark;
  const Analyser& analyser;
  const UsedNames& used_names;
  const AnalysedPatterns& patterns;
  const Groups& groups;
};

// One row for each group that no other depends on, in the order of ids. Patterns that could not be
// computed are reported.
Records make_rows(const RowSources& from, Evaluator& evaluator, Diagnostics& diagnostics);

}  // namespace tally
