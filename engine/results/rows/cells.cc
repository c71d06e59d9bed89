#include "engine/results/rows/cells.h"

#include <algorithm>

namespace tally {

int RowColumns::find(std::string_view name) const {
  const auto found = numbers_.find(name);
  return found == numbers_.end() ? -1 : found->second;
}

int RowColumns::add(std::string_view name, ColumnKind kind) {
  int number = find(name);
  if (number < 0) {
    number = static_cast<int>(columns_.size());
    columns_.push_back({kind, std::string(name)});
    numbers_.emplace(name, number);
  }
  if (kind == ColumnKind::computed) columns_[static_cast<size_t>(number)].kind = kind;
  return number;
}

const Value& Cells::at(std::string_view name) const {
  static const Value none;
  const Value* value = find(name);
  return value == nullptr ? none : *value;
}

void Cells::set(std::string_view name, Value value, ColumnKind kind) {
  if (columns_ == nullptr) columns_ = std::make_shared<RowColumns>();
  set(columns_->add(name, kind), std::move(value));
}

void Cells::set(int number, Value value) {
  const auto at = static_cast<size_t>(number);
  if (at >= values_.size()) {
    if (value.none()) return;
    values_.reserve(std::max(columns_->size(), at + 1));
    values_.resize(at + 1);
  }
  values_[at] = std::move(value);
}

void Cells::erase(std::string_view name) {
  if (cell(columns_ == nullptr ? -1 : columns_->find(name)) == nullptr) return;
  values_[static_cast<size_t>(columns_->find(name))] = {};
}

}  // namespace tally
