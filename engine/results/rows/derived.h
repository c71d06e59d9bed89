// Patterns that are computed from other patterns (mode text, python, perl, shell), once per result
// line.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "engine/results/read/views.h"
#include "engine/results/rows/records.h"
#include "engine/workflow/workflow.h"

namespace tally {

// One result line under construction. `values` holds the values its patterns found; `parameters`
// holds the texts of its workpackage.
struct Line {
  Cells values;
  const std::vector<std::pair<std::string, std::string>>* parameters = nullptr;
  std::vector<const Pattern*> left_out;  // patterns that are not computed here
  // Computed patterns that lacked an input, in Tally's own files all without a value: for later ones
  // they are as patterns that found nothing.
  std::set<std::string> not_computed;
  bool failed = false;  // all its workpackages failed, so missing values are not reported
};

// Computes `patterns` for every line, in the order of their dependencies. A value that cannot be
// computed, or cannot be converted to its type, becomes the pattern's default, or else nan (int,
// float), and of a text "" in JUBE's files and none in Tally's own. In these it is not computed where
// a value that it needs is missing. An int keeps a fraction or not, as the benchmark's rules say.
void derive(const ResultContext& context, const std::vector<const Pattern*>& patterns,
            std::vector<Line>& lines);

}  // namespace tally
