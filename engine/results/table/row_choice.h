// Which rows a table shows, and in what order.
#pragma once

#include <string>
#include <vector>

#include "engine/base/diagnostics.h"
#include "engine/expand/evaluator.h"
#include "engine/results/rows/records.h"
#include "engine/results/table/expressions.h"
#include "engine/workflow/workflow.h"

namespace tally {

// A condition that chooses rows. Parameters are substituted, then Python evaluates it.
struct RowCondition {
  const Text& text;
  // The way of a row that lacks a value for a name in it.
  WithoutValue without = WithoutValue::leaves_out;
  std::string called = "the filter";  // in messages
};

// Chooses the rows for which the condition is true.
struct Matching {
  std::vector<size_t> rows;     // indexes
  std::vector<size_t> lacking;  // those that were left out and lack a value
};
Matching matching_rows(const RowCondition& condition, const std::vector<Record>& rows,
                       Evaluator& evaluator, Diagnostics& diagnostics);
// Chooses rows likewise, but a row that is no measurement and lacks a value stays, unless the
// values that it has leave it out: nobody would see otherwise that it failed.
Matching matching_rows_or_failed(const RowCondition& condition, const std::vector<Record>& rows,
                                 Evaluator& evaluator, Diagnostics& diagnostics);

// Whether each of the workpackages whose rows are missing beside `rows` may be chosen by the
// condition: one that asks for what only a row has may choose it.
std::vector<bool> may_choose(const RowCondition& condition, const std::vector<Record>& rows,
                             const std::vector<Record>& missing, Evaluator& evaluator);

// Sorts rows by the named values as JUBE does: numbers as numbers, strings as strings. None is
// neither before nor after anything. Equal rows keep their order.
void sort_rows(const std::vector<std::string>& keys, std::vector<Record>& rows);

}  // namespace tally
