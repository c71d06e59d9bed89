// One workflow through every part of the engine that makes workpackages or says their values: the
// plan, a run that may be killed and continued, scripts, views of the journal, records, --logs.
#pragma once

#include <string>
#include <vector>

#include "engine/expand/evaluator.h"

namespace tally::testing {

struct Played {
  enum class End { equal, different, refused, large } end = End::equal;
  std::string what;  // the difference, or why the workflow was refused
  int workpackages = 0, values = 0, commands = 0, sessions = 0;
};

// `long_form`: of a workflow in the short form; else empty. `folder`: empty, absolute; the process's working directory is changed to it. `seed` says what
// fails, when the engine is killed and how many processes run at once.
struct Drawn {
  std::string yaml, long_form;
  std::vector<std::string> tags;
};
Played play(const Drawn& drawn, uint64_t seed, const std::string& folder, Evaluator& evaluator);

}  // namespace tally::testing
