#include "engine/results/read/rows_reader.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "engine/base/duration.h"

namespace tally {

namespace {

// "size 8, ranks 2"
std::string text_of(const std::map<std::string, std::string>& values) {
  std::string text;
  for (const auto& [name, value] : values)
    text += (text.empty() ? "" : ", ") + name + " " + (value.empty() ? "''" : value);
  return text;
}

}  // namespace

void add_seconds(const SearchedIn& time, const Value& value, StatedSeconds& seconds) {
  const std::optional<double> unit = seconds_of_unit(time.second->unit);
  const std::optional<Value> number = make_value(value.str(), ValueType::floating);
  if (!unit || !number || std::isnan(number->as_double())) return;
  add_seconds(StatedTime{time}, number->as_double() * *unit, seconds);
}

void add_seconds(const StatedTime& time, double stated, StatedSeconds& seconds) {
  const auto [known, is_new] = seconds.try_emplace(time, stated);
  if (!is_new) known->second = std::min(known->second, stated);
}

void add_seconds(const SearchedIn& time, const Statistics& values, StatedSeconds& seconds) {
  for (const MatchStatistic which : {MatchStatistic::value, MatchStatistic::least}) {
    const Value value = values.value_of(which);
    if (!value.none()) add_seconds(time, value, seconds);
  }
}

namespace {

void add_all(const Found& more, Found& found) {
  for (const auto& [name, statistics] : more)
    found.try_emplace(name, statistics.type()).first->second.add(statistics);
}

void add_all(const StatedSeconds& more, StatedSeconds& seconds) {
  for (const auto& [time, stated] : more) add_seconds(time, stated, seconds);
}

}  // namespace

void RowsReader::Part::add(const Part& more) {
  add_all(more.found, found);
  add_all(more.seconds, seconds);
}

const MatchedRow* MatchedRows::find(const RowKey& key) const {
  const auto found = indexes_.find(key);
  return found == indexes_.end() ? nullptr : &rows_[found->second];
}

void MatchedRows::add(const MatchedRow& row) {
  const auto [entry, is_new] = indexes_.emplace(row.key, rows_.size());
  if (is_new) rows_.emplace_back().key = row.key;
  add_all(row.found, rows_[entry->second].found);
  add_all(row.seconds, rows_[entry->second].seconds);
}

RowsReader::RowsReader(const Benchmark& benchmark, const Analyser& analyser)
    : analyser_(analyser), patterns_(patterns_of_rows(benchmark, analyser)) {}

const Pattern* RowsReader::first_of(const std::vector<const Pattern*>& patterns) const {
  const auto found =
      std::ranges::find_if(patterns, [&](const Pattern* pattern) { return begins_with(*pattern); });
  return found == patterns.end() ? nullptr : *found;
}

void RowsReader::begin_file() {
  ++file_;
  before_ = rows_.size();
  begins_.clear();
  above_ = {};
}

std::vector<std::string> RowsReader::end_file() {
  std::vector<std::string> left;
  for (const auto& [name, statistics] : above_.found) {
    const auto has = [&](const Part& row) { return row.found.count(name) != 0; };
    const auto first = rows_.begin() + static_cast<std::ptrdiff_t>(before_);
    if (std::any_of(first, rows_.end(), has)) {
      left.push_back(name);
      continue;
    }
    Part part;
    part.found.try_emplace(name, statistics.type()).first->second.add(statistics);
    for (const auto& [time, stated] : above_.seconds) {
      if (time.time.second->name.value == name) part.seconds.try_emplace(time, stated);
    }
    for (auto row = first; row != rows_.end(); ++row) row->add(part);
  }
  return left;
}

void RowsReader::begin_row(std::string_view text, const char* match) {
  const auto at = static_cast<size_t>(match - text.data());
  const size_t line_end = at == 0 ? std::string_view::npos : text.rfind('\n', at - 1);
  const char* begin = text.data() + (line_end == std::string_view::npos ? 0 : line_end + 1);
  // A second match of a line begins a row where it stands.
  if (!begins_.empty() && begin <= begins_.back()) begin = match;
  begins_.push_back(begin);
  rows_.emplace_back();
  files_.push_back(file_);
}

void RowsReader::add(const Pattern& pattern, const char* at, const Value& value,
                     const SearchedIn* time) {
  if (begins_.empty() || patterns_.count(&pattern) == 0) return;
  const auto next = std::upper_bound(begins_.begin(), begins_.end(), at);
  const auto row = static_cast<size_t>(next - begins_.begin());
  Part& part = row == 0 ? above_ : rows_[before_ + row - 1];
  part.found.try_emplace(pattern.name.value, pattern.type).first->second.add(value);
  if (time != nullptr) add_seconds(*time, value, part.seconds);
}

void RowsReader::add_row(Found found, StatedSeconds seconds) {
  rows_.push_back({std::move(found), std::move(seconds)});
  files_.push_back(file_);
}

std::string RowsReader::end_workpackage(const MatchSinks& found) {
  struct Seen {
    int count = 0, file = 0;
  };
  std::map<std::map<std::string, std::string>, Seen> known;
  std::string doubtful;
  for (size_t i = 0; i < rows_.size(); ++i) {
    Found& one = rows_[i].found;
    if (one.empty()) continue;  // its values have another type, which is said elsewhere
    MatchedRow row;
    for (const Text& name : analyser_.rows) {
      const auto value = one.find(name.value);
      const bool there = value != one.end() && value->second.count() > 0;
      row.key.values.emplace(name.value, there ? value->second.first().str() : "");
    }
    Seen& seen = known[row.key.values];
    if (seen.count > 0 && seen.file != files_[i] && doubtful.empty())
      doubtful = text_of(row.key.values);
    seen.file = files_[i];
    row.key.occurrence = seen.count++;
    row.found = std::move(one);
    row.seconds = std::move(rows_[i].seconds);
    found.row->rows.add(row);
    if (found.own != nullptr) found.own->rows.add(row);
  }
  begin_workpackage();
  return doubtful;
}

}  // namespace tally
