// Whether Python can read the expressions of a workflow, before anything of it has run.
#pragma once

#include "engine/base/diagnostics.h"
#include "engine/expand/evaluator.h"
#include "engine/workflow/workflow.h"

namespace tally {

// Warns of each expression that is no Python whatever its $names stand for, and of each column's
// format that no value can have: those that a result needs (patterns, filters, computed columns,
// expected values) and, with `parameters`, those that are evaluated while steps are made, too,
// where a run tells them with their workpackage. Nothing is evaluated. Starts Python only where
// there is an expression.
void check_expressions(const Benchmark& benchmark, bool parameters, Evaluator& evaluator,
                       Diagnostics& diagnostics);

}  // namespace tally
