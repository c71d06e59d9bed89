// Columns that are not read from a file: expressions, and values relative to a baseline row.
#pragma once

#include <string>
#include <vector>

#include "engine/base/diagnostics.h"
#include "engine/expand/evaluator.h"
#include "engine/results/rows/records.h"
#include "engine/results/table/expressions.h"
#include "engine/results/table/result_table.h"
#include "engine/workflow/workflow.h"

namespace tally {

// Computes the derived columns among `columns` into `rows`, in the order of column_order().
// Statistics of expressions are not computed here (add_statistics()).
void add_derived_columns(const ResultContext& context, const std::vector<Column>& columns,
                         const Records& records, std::vector<Record>& rows);

// Computes the column's expression in the repeats of so many rows. The column is relative to none.
// Faults of a column that shows something of all repeats are reported here, and those of any other
// where it is added to the rows.
void add_in_repeats(const ResultContext& context, const Column& column, const Records& records,
                    size_t rows, std::vector<Record>& repeats);

// column_order() of columns that are computed into these rows.
std::vector<const Column*> columns_in_order(const Benchmark& benchmark,
                                            const std::vector<Column>& columns,
                                            const Records& records,
                                            const std::vector<Record>& rows);

// How a note of a row begins that says why its cell of the column is empty.
std::string empty_cell(const Column& column);

}  // namespace tally
