// The order in which the columns of a table are computed, and the names that they read.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "engine/workflow/workflow.h"

namespace tally {

// The name of a column's values among those of a row: that of a ratio is its title, or NAME_relative.
std::string value_name(const Column& column);
// The names that a column's expression reads, also of its baseline row.
std::vector<std::string> names_in_expression(const Column& column);
// These, and the names in `relative_to`.
std::vector<std::string> names_computed_with(const Column& column);

// The columns in the order in which they are computed: that of the table, but for those that read
// columns to their right. `is_value`: whether rows have a value of that name without the columns.
// Columns to the left of one with such a name read that value.
struct ColumnOrder {
  std::vector<const Column*> columns;
  std::vector<const Column*> circle;  // that read each other, each the next; empty: there are none
  // Columns with the name of such a value that come before a column to their left, which reads the value.
  std::vector<const Column*> early;
};
ColumnOrder column_order(const std::vector<Column>& columns,
                         const std::function<bool(const std::string&)>& is_value);

// The columns that are no ratio and read one, also through others, with the name that they read. A
// column to the left of one whose values have the name of a pattern reads that pattern.
std::map<const Column*, std::string> ratios_read(
    const ColumnOrder& order, const std::function<bool(const std::string&)>& is_value);

}  // namespace tally
