// Columns that no file holds: expressions, values relative to a baseline row; references; filters.
#pragma once

#include <string>
#include <vector>

#include "engine/analyse/records.h"
#include "engine/base/diagnostics.h"
#include "engine/expand/evaluator.h"
#include "engine/report/report.h"
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

// Orders rows by the named values as JUBE does: numbers as numbers, strings as strings, None
// neither before nor after anything, equal rows as they were.
void sort_rows(const std::vector<std::string>& keys, std::vector<Record>& rows);

// Checks the references of the table against the rows; one note each. The comparison is with the
// value itself, the note shows it as its column does.
void check_references(const Table& table, const std::vector<Record>& rows, Evaluator& evaluator,
                      Diagnostics& diagnostics, RenderedResult& out);

}  // namespace tally
