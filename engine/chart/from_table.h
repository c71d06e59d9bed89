// Makes a figure from the rows of a table.
#pragma once

#include "engine/base/status.h"
#include "engine/chart/figure.h"
#include "engine/results/table/result_table.h"

namespace tally {

// The rows of `table` as `chart` asks. Rows that failed, and rows without a value, are not drawn; a
// note of the figure counts them. An error says what cannot be drawn: an unknown column, a text
// where a number is needed, several values at one place of a line or bar chart.
Status figure_of(const Chart& chart, const ResultTable& table, Figure* figure);

}  // namespace tally
