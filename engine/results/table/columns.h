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

// The name of a column's values in a record. Usually this is the column's own name. For a plain
// column relative to a baseline it is the column's title, so that the plain column can stand beside
// it. For a statistic of repeats it is the name and the statistic, "rate median".
std::string column_key(const Column& column);

// Computes the derived columns among `columns` into `rows`, in order. A column may use those before
// it. Statistics of expressions are not computed here (add_statistics()).
void add_derived_columns(const ResultContext& context, const std::vector<Column>& columns,
                         const Records& records, std::vector<Record>& rows);

}  // namespace tally
