// References: what a table's values are expected to be.
#pragma once

#include <set>
#include <vector>

#include "engine/base/diagnostics.h"
#include "engine/expand/evaluator.h"
#include "engine/results/table/result_table.h"
#include "engine/workflow/workflow.h"

namespace tally {

// Checks the references of the table against its rows. The comparison uses the full value; the
// message shows the value in the column's format. A reference is missed by a row without a value,
// by a row of a failed workpackage, and when no row is compared with it. A row with an expected
// outcome (such as out of memory) needs no value.
void check_references(const Benchmark& benchmark, const Table& table, Evaluator& evaluator,
                      Diagnostics& diagnostics, ResultTable& out);

// The rows among `rows` that lack the value of a reference that chooses them.
std::set<size_t> rows_that_miss(const Table& table, const std::vector<Record>& rows,
                                Evaluator& evaluator, Diagnostics& diagnostics);

}  // namespace tally
