// What each stage of results is given: the definitions, who evaluates, and where problems go.
#pragma once

#include "engine/base/diagnostics.h"
#include "engine/expand/evaluator.h"
#include "engine/workflow/workflow.h"

namespace tally {

// Refers to objects of the caller, which must outlive it.
struct ResultContext {
  const Benchmark& benchmark;
  Evaluator& evaluator;
  Diagnostics& diagnostics;
};

}  // namespace tally
