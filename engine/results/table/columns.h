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

// Computes the derived columns among `columns` into `rows`, in order. A column may use those before
// it. Statistics of expressions are not computed here (add_statistics()).
void add_derived_columns(const ResultContext& context, const std::vector<Column>& columns,
                         const Records& records, std::vector<Record>& rows);

// How a note of a row begins that says why its cell of the column is empty.
std::string empty_cell(const Column& column);

// Whether the column computes with its values, so that texts are an error: `statistic`, `better`,
// `relative_to`.
bool needs_numbers(const Column& column);

}  // namespace tally
