#include "engine/results/table/column_info.h"

#include <utility>
#include <variant>

#include "engine/base/text.h"
#include "engine/python/tokens.h"
#include "engine/workflow/column_order.h"

namespace tally {
namespace {

ColumnType value_type(const Value& value) {
  if (value.none()) return ColumnType::empty;
  if (std::holds_alternative<std::string>(value.data)) return ColumnType::text;
  if (std::holds_alternative<long long>(value.data)) return ColumnType::integer;
  return std::holds_alternative<double>(value.data) ? ColumnType::floating : ColumnType::number;
}

// The type of values of both.
ColumnType common_type(ColumnType a, ColumnType b) {
  if (a == b || b == ColumnType::empty) return a;
  if (a == ColumnType::empty) return b;
  const auto other = [](ColumnType type) {
    return type == ColumnType::text || type == ColumnType::mixed;
  };
  return other(a) || other(b) ? ColumnType::mixed : ColumnType::number;
}

}  // namespace

std::set<std::string> row_names(const Column& column) {
  if (column.expression.value.empty()) return {column.name.value};
  const std::vector<std::string> names = names_read(column.expression.value);
  return {names.begin(), names.end()};
}

std::set<std::string> names_through(const std::vector<Column>& columns,
                                    std::set<std::string> names) {
  for (size_t before = 0; before != names.size();) {
    before = names.size();
    for (const Column& column : columns) {
      if (column.computed() && names.count(value_name(column)) != 0) names.merge(row_names(column));
    }
  }
  return names;
}

TableColumn::TableColumn(Column column) : Column(std::move(column)) {
  info.kind = computed() ? ColumnKind::computed : ColumnKind::read;
  info.name = column_key(*this);
  info.title = column_title();
  info.sources = row_names(*this);
}

std::vector<TableColumn> table_columns(const std::vector<Column>& columns) {
  std::vector<TableColumn> all;
  all.reserve(columns.size());
  for (const Column& column : columns) all.emplace_back(column);
  return all;
}

TableColumn own_column(const std::string& name, const std::string& title) {
  Column column;
  column.name.value = "tally " + name;
  column.title = title;
  TableColumn own(std::move(column));
  own.info.kind = ColumnKind::own;
  return own;
}

std::string statistic_key(const Column& column) {
  return column.name.value + " " + column.statistic->word;
}

std::string column_key(const Column& column) {
  const bool of_repeats = column.relative_to.empty() && column.statistic != nullptr;
  return of_repeats ? statistic_key(column) : value_name(column);
}

void find_types(const std::vector<Record>& rows, std::vector<TableColumn>& columns) {
  for (TableColumn& column : columns) {
    const ValuesOf values(column.info.name);
    column.info.type = ColumnType::empty;
    for (const Record& row : rows) {
      const Value* value = values.in(row);
      if (value != nullptr) column.info.type = common_type(column.info.type, value_type(*value));
    }
  }
}

ShownPoint::ShownPoint(const std::vector<TableColumn>& columns,
                       const std::vector<std::string>& parameters, size_t first) {
  for (size_t i = first; i < columns.size(); ++i) {
    const TableColumn& column = columns[i];
    if (!column.expression.value.empty() || !contains(parameters, column.name.value)) continue;
    columns_.push_back(i);
    values_.emplace_back(column.info.name);
  }
}

bool ShownPoint::has(size_t column) const {
  return contains(columns_, column);
}

std::vector<const Value*> ShownPoint::of(const Record& row) const {
  std::vector<const Value*> values;
  values.reserve(values_.size());
  for (const ValuesOf& one : values_) values.push_back(one.in(row));
  return values;
}

}  // namespace tally
