// Columns that no file holds: expressions, values relative to a baseline row; references; filters.
#pragma once

#include <string>
#include <vector>

#include "engine/base/diagnostics.h"
#include "engine/expand/evaluator.h"
#include "engine/results/records.h"
#include "engine/results/result_table.h"
#include "engine/workflow/workflow.h"

namespace tally {

// The name a column's values have in a record: its own, or, for a plain column relative to a
// baseline, its title, so that the column itself can stand beside it.
std::string column_key(const Column& column);

// Computes the derived ones among `columns` into `rows`, in order, so that one may use those before
// it.
void add_derived_columns(const Benchmark& benchmark, const std::vector<Column>& columns,
                         const Records& records, std::vector<Record>& rows, Evaluator& evaluator,
                         Diagnostics& diagnostics);

// Keeps the rows for which `filter` (parameters substituted, then Python) is true. A row that has
// no value for a name in it is left out.
void apply_filter(const Text& filter, std::vector<Record>& rows, Evaluator& evaluator,
                  Diagnostics& diagnostics);
// The places of the rows that apply_filter() would keep.
std::vector<size_t> matching_rows(const Text& filter, const std::vector<Record>& rows,
                                  Evaluator& evaluator, Diagnostics& diagnostics);

// Orders rows by the named values as JUBE does: numbers as numbers, strings as strings, None
// neither before nor after anything, equal rows as they were.
void sort_rows(const std::vector<std::string>& keys, std::vector<Record>& rows);

// Checks the references of the table against its rows. The comparison is with the value itself,
// what is said shows it as its column does. A row without a value, or of a workpackage that failed,
// misses its reference, and so does a reference that no row is compared with; where an outcome was
// expected (out of memory) no value is asked for.
void check_references(const Benchmark& benchmark, const Table& table, Evaluator& evaluator,
                      Diagnostics& diagnostics, ResultTable& out);

// "<= 560" and the like as a Python expression over x; anything else is one already.
std::string condition_expression(const std::string& condition);

}  // namespace tally
