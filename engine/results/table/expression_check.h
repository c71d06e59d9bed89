// Checks that Python can parse the expressions of a workflow, before anything has run.
#pragma once

#include "engine/base/diagnostics.h"
#include "engine/expand/evaluator.h"
#include "engine/workflow/workflow.h"

namespace tally {

// Warns of each expression that is invalid Python whatever its $names stand for, and of each column
// format that fits no value. For a reference, which nothing would meet, and for a rule it is an
// error. Checks rules and the expressions that a result needs: patterns, filters, computed columns,
// expected values. With `parameters` it also checks those that are evaluated while steps are made; a
// run reports these with their workpackage. Evaluates nothing. Starts Python only if there is an
// expression.
void check_expressions(const Benchmark& benchmark, bool parameters, Evaluator& evaluator,
                       Diagnostics& diagnostics);

}  // namespace tally
