#include "engine/workflow/column_order.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <utility>

#include "engine/python/tokens.h"

namespace tally {

std::string value_name(const Column& column) {
  const std::string& name = column.name.value;
  if (column.relative_to.empty() || !column.expression.value.empty()) return name;
  return column.title.empty() || column.title == name ? name + "_relative" : column.title;
}

std::vector<std::string> names_in_expression(const Column& column) {
  std::vector<std::string> names = names_read(column.expression.value);
  const std::vector<PythonToken> tokens = tokens_of(column.expression.value);
  for (size_t i = 2; i < tokens.size(); ++i) {
    if (tokens[i].kind == TokenKind::attribute && tokens[i - 2].text.ends_with("baseline"))
      names.emplace_back(tokens[i].text);
  }
  return names;
}

std::vector<std::string> names_computed_with(const Column& column) {
  std::vector<std::string> names = names_in_expression(column);
  for (const auto& [name, value] : column.relative_to) names.push_back(name.value);
  return names;
}

namespace {

// Whether a column reads the values of another, if it names them.
bool may_read(const Column& column, const Column& other,
              const std::function<bool(const std::string&)>& is_value) {
  return &other < &column || (&other != &column && !is_value(value_name(other)));
}

// Depth-first: a column comes after those that it reads.
class ColumnSorter {
 public:
  ColumnSorter(const std::vector<Column>& columns,
               const std::function<bool(const std::string&)>& is_value)
      : columns_(columns), is_value_(is_value), seen_(columns.size(), Seen::no) {}

  ColumnOrder sort() {
    for (size_t i = 0; i < columns_.size(); ++i) visit(i);
    find_early();
    return std::move(order_);
  }

 private:
  enum class Seen : uint8_t { no, open, done };

  static bool is_computed(const Column& column) {
    return !column.expression.value.empty() || !column.relative_to.empty();
  }

  void visit(size_t column) {
    if (seen_[column] == Seen::open && order_.circle.empty()) {
      const auto begin = std::ranges::find(open_, column);
      for (auto one = begin; one != open_.end(); ++one) order_.circle.push_back(&columns_[*one]);
    }
    if (seen_[column] != Seen::no) return;
    seen_[column] = Seen::open;
    open_.push_back(column);
    for (const std::string& name : names_computed_with(columns_[column])) {
      for (size_t other = 0; other < columns_.size(); ++other) {
        if (is_computed(columns_[other]) && value_name(columns_[other]) == name &&
            may_read(columns_[column], columns_[other], is_value_))
          visit(other);
      }
    }
    open_.pop_back();
    seen_[column] = Seen::done;
    order_.columns.push_back(&columns_[column]);
  }

  void find_early() {
    const Column* left = nullptr;  // the leftmost of the columns that come later
    for (auto at = order_.columns.rbegin(); at != order_.columns.rend(); ++at) {
      const Column* column = *at;
      if (left != nullptr && left < column && is_computed(*column) &&
          is_value_(value_name(*column)))
        order_.early.push_back(column);
      if (left == nullptr || column < left) left = column;
    }
  }

  const std::vector<Column>& columns_;
  const std::function<bool(const std::string&)>& is_value_;
  std::vector<Seen> seen_;
  std::vector<size_t> open_;
  ColumnOrder order_;
};

}  // namespace

ColumnOrder column_order(const std::vector<Column>& columns,
                         const std::function<bool(const std::string&)>& is_value) {
  return ColumnSorter(columns, is_value).sort();
}

std::map<const Column*, std::string> ratios_read(
    const ColumnOrder& order, const std::function<bool(const std::string&)>& is_value) {
  std::map<const Column*, std::string> found;
  std::vector<const Column*> ratios;  // and what reads one
  for (const Column* column : order.columns) {
    const bool ratio = !column->relative_to.empty();
    const std::vector<std::string> names = names_computed_with(*column);
    const auto read = std::ranges::find_if(ratios, [&](const Column* other) {
      return may_read(*column, *other, is_value) &&
             std::ranges::find(names, value_name(*other)) != names.end();
    });
    if (!ratio && read == ratios.end()) continue;
    if (!ratio) found[column] = value_name(**read);
    ratios.push_back(column);
  }
  return found;
}

}  // namespace tally
