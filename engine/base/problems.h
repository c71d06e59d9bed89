// Errors and warnings as other programs read them: editors, CI systems, code scanners.
#pragma once

#include <string>
#include <vector>

#include "engine/base/diagnostics.h"

namespace tally {

// A diagnostic with the name of its file.
struct Problem {
  std::string file;  // empty: it belongs to no file
  uint32_t line = 0, column = 0;
  Severity severity = Severity::error;
  std::string message, hint;
  bool operator==(const Problem&) const = default;
};

void add_problems(const Diagnostics& diagnostics, const Sources& sources,
                  std::vector<Problem>* problems);

// The problems, each once.
//   gcc     FILE:LINE:COLUMN: error: MESSAGE; HINT
//   github  ::error file=FILE,line=LINE,col=COLUMN::MESSAGE, a command of GitHub's workflows
std::string problems_for_gcc(const std::vector<Problem>& problems);
std::string problems_for_github(const std::vector<Problem>& problems);

}  // namespace tally
