// Patterns that are computed from others (mode text, python, perl, shell), once per result line.
#pragma once

#include <string>
#include <vector>

#include "engine/base/diagnostics.h"
#include "engine/expand/evaluator.h"
#include "engine/results/records.h"
#include "engine/workflow/workflow.h"

namespace tally {

// One result line while it is made: `values` holds what its patterns found, `parameters` the texts
// of its workpackage.
struct Line {
  std::map<std::string, Value> values;
  const std::vector<std::pair<std::string, std::string>>* parameters = nullptr;
  bool failed = false;  // no workpackage of it ended well: that a value is missing is no surprise
};

// Computes `patterns` for every line, those that use another derived pattern after it. A value that
// cannot be computed, or not as its type, is the pattern's default, else nan (int, float) or "".
// `exact`: an int that has a fraction stays as it was computed; else it is cut off, as JUBE has it.
void derive(const std::vector<const Pattern*>& patterns, std::vector<Line>& lines,
            Evaluator& evaluator, bool exact, Diagnostics& diagnostics);

}  // namespace tally
