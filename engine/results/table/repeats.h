// Statistics over the repeats of a point: the columns that ask for them, and names as
// `rate_median`.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "engine/base/diagnostics.h"
#include "engine/expand/evaluator.h"
#include "engine/results/rows/records.h"
#include "engine/results/table/result_table.h"
#include "engine/workflow/workflow.h"

namespace tally {

// Computes the summaries of the columns that ask for repeats, and stores the value of each
// statistic under statistic_key(). It is stored under the plain name as well if no column shows the
// plain value (that of an expression by add_derived_columns()), so that filters, sorting,
// expressions and references use the value that is shown. An expression is computed for each
// repeat. Also stores the values of `names` such as rate_median.
//
// The bootstrap's seed is the run's id, so that the same run always has the same interval.
void add_statistics(const ResultContext& context, const std::vector<Column>& columns,
                    const std::set<std::string>& names, const Records& records,
                    std::vector<Record>& rows);

// Whether no column shows the value of the first repeat under the column's name.
bool owns_name(const std::vector<Column>& columns, const Column& column);

// Adds the columns that `uncertainty` asks for, and a last one with the number of repeats ("5 of
// 6"), to the columns and rows. Notes intervals that are no intervals, and outliers.
void show_statistics(ResultTable& out);

// The lines below a table that say what its statistics of repeats are: "seconds, rate: median of the
// repeats and its 95 % interval".
std::vector<std::string> repeats_legend(const ResultTable& table);

// Half of the width of the median's 95 % interval, divided by the median. Negative if it is not
// known: fewer than six values, or a median of 0.
double relative_half_width(const statistics::Sample& sample);

// Notes rows whose interval is wider than their step asks.
void note_precision(const Benchmark& benchmark, ResultTable& out);

}  // namespace tally
