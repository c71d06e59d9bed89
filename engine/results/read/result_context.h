// The context of each stage of results: the definitions, who evaluates, and where problems go.
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
  // A column whose expression fails in each row is an error, as a pattern that matches nothing is.
  bool empty_column_is_error = false;
};

}  // namespace tally
