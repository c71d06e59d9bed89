// The values of a row by column number, and what a number means.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/python/value.h"

namespace tally {

class Points;

enum class ColumnKind {
  found,     // a parameter, a built-in, or a pattern's value: rows without it are no surprise
  computed,  // every row has been asked for it: an expression, a statistic of repeats, a mark
};

struct ColumnInfo {
  ColumnKind kind = ColumnKind::found;
  std::string name;
};

// The columns that rows of one origin have in common. Columns are only added, so that a number
// keeps its meaning.
class RowColumns {
 public:
  std::shared_ptr<const Points> points;  // of the rows' run; null: they are of no run

  size_t size() const { return columns_.size(); }
  const ColumnInfo& operator[](size_t number) const { return columns_[number]; }
  // -1: there is none of that name.
  int find(std::string_view name) const;
  // Adds the column if it is new. One that is computed stays so.
  int add(std::string_view name, ColumnKind kind = ColumnKind::found);

 private:
  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  std::vector<ColumnInfo> columns_;
  std::unordered_map<std::string, int, Hash, std::equal_to<>> numbers_;
};

// A row's values. A row without a cell for a column has None there.
class Cells {
 public:
  Cells() = default;
  explicit Cells(std::shared_ptr<RowColumns> columns) : columns_(std::move(columns)) {}

  // Null: None.
  const Value* find(std::string_view name) const {
    return columns_ == nullptr ? nullptr : cell(columns_->find(name));
  }
  // None where there is no value.
  const Value& at(std::string_view name) const;
  bool has(std::string_view name) const { return find(name) != nullptr; }
  // Adds the column if it is new. Cells made without columns get their own.
  void set(std::string_view name, Value value, ColumnKind kind = ColumnKind::found);
  void erase(std::string_view name);

  // The value in the column of that number. Null: None.
  const Value* cell(int number) const {
    const auto at = static_cast<size_t>(number);  // -1 is beyond all
    return at < values_.size() && !values_[at].none() ? &values_[at] : nullptr;
  }
  void set(int number, Value value);
  // The cells from 0 on, some of them None.
  const std::vector<Value>& all() const { return values_; }
  std::vector<Value> take() && { return std::move(values_); }

  const std::shared_ptr<RowColumns>& columns() const { return columns_; }
  // `columns`: a copy of its own, with the same numbers.
  void share(std::shared_ptr<RowColumns> columns) { columns_ = std::move(columns); }

 private:
  std::shared_ptr<RowColumns> columns_;  // null: there are no cells
  std::vector<Value> values_;
};

}  // namespace tally
