// Checks of a workflow's expressions, references and rules, before anything has run.
#pragma once

#include "engine/base/diagnostics.h"
#include "engine/expand/evaluator.h"
#include "engine/plan/planned_run.h"
#include "engine/workflow/workflow.h"

namespace tally {

// Warns of each expression that is invalid Python whatever its $names stand for, and of each column
// format that fits no value. For a reference, which nothing would meet, and for a rule it is an
// error. Checks rules and the expressions that a result needs: patterns, filters, computed columns,
// expected values. With `parameters` it also checks those that are evaluated while steps are made;
// a run reports these with their workpackage. Evaluates nothing. Starts Python only if there is an
// expression.
void check_expressions(const Benchmark& benchmark, bool parameters, Evaluator& evaluator,
                       Diagnostics& diagnostics);

// Finds references that no value can meet. An error for each: a range whose end is before its
// beginning, a tolerance below 0, a bound that is no number, a number compared with a text, a
// condition that uses no value of a row, and `where` that chooses no row.
void check_reference_conditions(const Benchmark& benchmark, Diagnostics& diagnostics);

// Checks the `where` rules that are known in a plan that evaluates nothing.
// An error for each step whose rules leave out all of its points, whatever Python would say of the
// rest: the message of a plan that computes. Rules that cannot be read without Python are taken to
// hold.
void check_known_rules(PlannedRun& planned, Diagnostics& diagnostics);

}  // namespace tally
