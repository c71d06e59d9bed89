// Columns that are not read from a file: expressions, and values relative to a baseline row. Also
// references and filters.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "engine/base/diagnostics.h"
#include "engine/expand/evaluator.h"
#include "engine/results/rows/records.h"
#include "engine/results/table/expressions.h"
#include "engine/results/table/result_table.h"
#include "engine/workflow/workflow.h"

namespace tally {

// The name of a column's values in a record. Usually this is the column's own name. For a plain
// column relative to a baseline it is the column's title, so that the plain column can stand beside
// it. For a statistic of repeats it is the name and the statistic, "rate median".
std::string column_key(const Column& column);

// Computes the derived columns among `columns` into `rows`, in order. A column may use those before
// it. Statistics of expressions are not computed here (add_statistics()).
void add_derived_columns(const Benchmark& benchmark, const std::vector<Column>& columns,
                         const Records& records, std::vector<Record>& rows, Evaluator& evaluator,
                         Diagnostics& diagnostics);

// Chooses the rows for which `filter` is true. Parameters are substituted, then Python evaluates it.
// `without`: what happens to a row that lacks a value for a name in it.
struct Matching {
  std::vector<size_t> rows;     // indexes
  std::vector<size_t> lacking;  // those that were left out and lack a value
};
Matching matching_rows(const Text& filter, const std::vector<Record>& rows, Evaluator& evaluator,
                       Diagnostics& diagnostics, WithoutValue without = WithoutValue::leaves_out);
// The same, but a row that is no measurement and lacks a value stays: nobody would see otherwise that
// it failed.
Matching matching_rows_or_failed(const Text& filter, const std::vector<Record>& rows,
                                 Evaluator& evaluator, Diagnostics& diagnostics,
                                 WithoutValue without = WithoutValue::leaves_out);

// Sorts rows by the named values as JUBE does: numbers as numbers, strings as strings. None is
// neither before nor after anything. Equal rows keep their order.
void sort_rows(const std::vector<std::string>& keys, std::vector<Record>& rows);

// Checks the references of the table against its rows. The comparison uses the full value; the
// message shows the value in the column's format. A reference is missed by a row without a value,
// by a row of a failed workpackage, and when no row is compared with it. A row with an expected
// outcome (such as out of memory) needs no value.
// The rows among `rows` that lack the value of a reference that chooses them.
std::set<size_t> rows_that_miss(const Table& table, const std::vector<Record>& rows,
                                Evaluator& evaluator, Diagnostics& diagnostics);
void check_references(const Benchmark& benchmark, const Table& table, Evaluator& evaluator,
                      Diagnostics& diagnostics, ResultTable& out);

}  // namespace tally
