// Makes figures from the rows of tables, or of CSV files.
#pragma once

#include <string>
#include <vector>

#include "engine/base/status.h"
#include "engine/chart/figure.h"
#include "engine/results/table/result_table.h"

namespace tally {

// Reads CSV after RFC 4180: the first line holds the names, quotes may enclose a cell. The
// separator is a comma, a semicolon or a tab: the one of which the first line has most. A column is
// numeric if all its cells are numbers or empty. A name "tps[tokens/s]" gives the column tps the
// unit tokens/s. A row whose column `status` says FAILED or LOST has failed.
Status read_csv(const std::string& text, ResultTable* table);

// Each published series joins its panel, or all panels. `panel_values` are the facet's values, in
// the order of the panels; a value that no row has gets no panel. `by_name`: x has categories.
Status add_published(const Chart& chart, bool by_name, const std::vector<std::string>& panel_values,
                     Figure* figure);

// Makes a figure from the rows of a table.

// The rows of `table` as `chart` asks. Rows that failed, and rows without a value, are not drawn; a
// note of the figure counts them. An error says what cannot be drawn: an unknown column, a text
// where a number is needed, several values at one place of a line or bar chart.
Status figure_of(const Chart& chart, const ResultTable& table, Figure* figure);

}  // namespace tally
