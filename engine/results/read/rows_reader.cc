#include "engine/results/read/rows_reader.h"

#include <algorithm>
#include <utility>

#include "engine/workflow/pattern_uses.h"

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

const MatchedRow* MatchedRows::find(const RowKey& key) const {
  const auto found = indexes_.find(key);
  return found == indexes_.end() ? nullptr : &rows_[found->second];
}

void MatchedRows::add(const MatchedRow& row) {
  const auto [entry, is_new] = indexes_.emplace(row.key, rows_.size());
  if (is_new) rows_.emplace_back().key = row.key;
  Found& found = rows_[entry->second].found;
  for (const auto& [name, statistics] : row.found)
    found.try_emplace(name, statistics.type()).first->second.add(statistics);
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
  for (const auto& [name, statistics] : above_) {
    const auto has = [&](const Found& row) { return row.count(name) != 0; };
    const auto first = rows_.begin() + static_cast<std::ptrdiff_t>(before_);
    if (std::any_of(first, rows_.end(), has)) {
      left.push_back(name);
      continue;
    }
    for (auto row = first; row != rows_.end(); ++row)
      row->try_emplace(name, statistics.type()).first->second.add(statistics);
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

void RowsReader::add(const Pattern& pattern, const char* at, const Value& value) {
  if (begins_.empty() || patterns_.count(&pattern) == 0) return;
  const auto next = std::upper_bound(begins_.begin(), begins_.end(), at);
  const auto row = static_cast<size_t>(next - begins_.begin());
  Found& found = row == 0 ? above_ : rows_[before_ + row - 1];
  found.try_emplace(pattern.name.value, pattern.type).first->second.add(value);
}

void RowsReader::add_row(Found found) {
  rows_.push_back(std::move(found));
  files_.push_back(file_);
}

std::string RowsReader::end_workpackage(const MatchSinks& found) {
  struct Seen {
    int count = 0, file = 0;
  };
  std::map<std::map<std::string, std::string>, Seen> known;
  std::string doubtful;
  for (size_t i = 0; i < rows_.size(); ++i) {
    Found& one = rows_[i];
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
    found.row->rows.add(row);
    if (found.own != nullptr) found.own->rows.add(row);
  }
  begin_workpackage();
  return doubtful;
}

}  // namespace tally
