// A column of a table, described once for tables, reports, charts, JSON, CSV, databases, comparisons
// and the history.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "engine/results/rows/records.h"
#include "engine/workflow/workflow.h"

namespace tally {

enum class ColumnKind {
  read,      // a parameter, a built-in, a pattern's value, or a statistic of its repeats
  computed,  // by an expression, or against a baseline row
  own,       // Tally added it: a mark, the repeats, the run. The rows themselves have its content.
};

// The type of a column's values, in the rows that the table shows.
enum class ColumnType {
  empty,    // there are none
  integer,  // of 64 bits
  floating,
  number,  // of several types, or larger
  text,
  mixed  // texts and numbers
};

// The names of the row's values that a column shows: those that its expression reads, or its own.
std::set<std::string> row_names(const Column& column);
// Adds the names that computed columns among them come from.
std::set<std::string> names_through(const std::vector<Column>& columns,
                                    std::set<std::string> names);

struct ColumnInfo {
  ColumnKind kind = ColumnKind::read;
  std::string name;   // of its values in rows. A table may show one name twice.
  std::string title;  // the heading, without the unit
  ColumnType type = ColumnType::empty;
  std::string unit;               // of its numbers. Empty: they have none, or are ratios.
  std::set<std::string> sources;  // names_through() of what it shows

  bool numeric() const {
    return type == ColumnType::integer || type == ColumnType::floating ||
           type == ColumnType::number;
  }
};

// A column as a table shows it: what the workflow says, and what it is.
struct TableColumn : Column {
  TableColumn() = default;
  explicit TableColumn(Column column);

  ColumnInfo info;
};
std::vector<TableColumn> table_columns(const std::vector<Column>& columns);
// A column of Tally's own. The name of its values has a blank, which no value of the input has.
TableColumn own_column(const std::string& name, const std::string& title);

// The name of a column's values in a row. Usually this is the column's own name. For a plain
// column relative to a baseline it is the column's title, so that the plain column can stand beside
// it. For a statistic of repeats it is the name and the statistic, "rate median".
std::string column_key(const Column& column);
// The name of a column's statistic in a row, "rate median". No other value can have it.
std::string statistic_key(const Column& column);

// Finds the columns' types, after rows or columns have changed.
void find_types(const std::vector<Record>& rows, std::vector<TableColumn>& columns);

// The texts by which a reader of the table knows a row's point: its values in the columns that are
// parameters. A parameter that a key of the step hides has there what the step made of it; its point
// (Record::point) has its own value.
class ShownPoint {
 public:
  // Columns before `first` are none of them: there is the run.
  ShownPoint(const std::vector<TableColumn>& columns, const std::vector<std::string>& parameters,
             size_t first = 0);

  // The positions of these columns.
  const std::vector<size_t>& columns() const { return columns_; }
  bool has(size_t column) const;
  // In the order of columns(). Null: the row has no value there.
  std::vector<const Value*> of(const Record& row) const;

 private:
  std::vector<size_t> columns_;
  std::vector<ValuesOf> values_;
};

}  // namespace tally
