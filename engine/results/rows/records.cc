#include "engine/results/rows/records.h"

#include <algorithm>

#include "engine/base/text.h"

namespace tally {

int RowColumns::find(std::string_view name) const {
  const auto found = numbers_.find(name);
  return found == numbers_.end() ? -1 : found->second;
}

int RowColumns::add(std::string_view name, Asked asked) {
  int number = find(name);
  if (number < 0) {
    number = static_cast<int>(names_.size());
    names_.emplace_back(name);
    asked_.push_back(false);
    numbers_.emplace(name, number);
  }
  if (asked == Asked::asked) asked_[static_cast<size_t>(number)] = true;
  return number;
}

const Value& Cells::at(std::string_view name) const {
  static const Value none;
  const Value* value = find(name);
  return value == nullptr ? none : *value;
}

void Cells::set(std::string_view name, Value value, Asked asked) {
  if (columns_ == nullptr) columns_ = std::make_shared<RowColumns>();
  set(columns_->add(name, asked), std::move(value));
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

namespace {

// "a; b", each text once.
void add_text(const RareText& more, RareText& all) {
  if (more.empty() || all.str().find(more.str()) != std::string::npos) return;
  all = all.empty() ? more : RareText(all.str() + "; " + more.str());
}

}  // namespace

const char* Record::why_not_measured() const {
  if (state == State::lost) return "was lost";
  if (failed()) return "failed";
  if (state == State::changed) return "has output that changed after its end";
  return unfinished() ? "has not ended" : "ended in an outcome that its step expects";
}

void Record::add_disturbance(const Disturbance& one) {
  if (!one.any()) return;
  if (one.busy()) ++busy;
  if (one.throttled()) ++throttled;
  disturbance.cores = std::max(disturbance.cores, one.cores);
  add_text(one.gpu_users, disturbance.gpu_users);
  add_text(one.throttling, disturbance.throttling);
}

void Record::take_marks_of_earlier(const std::set<std::string>& shown) {
  for (const MarksOfEarlier& one : *earlier) {
    if (std::ranges::none_of(one.names,
                             [&](const std::string& name) { return shown.count(name) != 0; }))
      continue;
    if (measured()) state = one.state;
    reused = reused || one.reused;
    for (const Disturbance& each : one.disturbances) add_disturbance(each);
  }
  busy = std::min(busy, all_repeats);
  throttled = std::min(throttled, all_repeats);
  earlier = {};
}

void Records::add_unit(const std::string& name, const std::string& unit) {
  ValueFacts& values = known[name];
  if (values.unit.empty()) {
    values.unit = unit;
  } else if (values.unit != unit && values.other_unit.empty()) {
    values.other_unit = unit;
  }
}

void give_own_columns(std::vector<Record>& rows) {
  std::shared_ptr<RowColumns> before, own;
  for (Record& row : rows) {
    if (row.values.columns() == nullptr) continue;
    if (row.values.columns() != before) {
      before = row.values.columns();
      own = std::make_shared<RowColumns>(*before);
    }
    row.values.share(own);
  }
}

void append(Records& records, Records more) {
  if (records.rows.empty()) {
    records.rows = std::move(more.rows);
  } else {
    for (Record& row : more.rows) records.rows.push_back(std::move(row));
  }
  for (Record& row : more.missing) records.missing.push_back(std::move(row));
  for (auto notes : {&Records::notes, &Records::missing_rows, &Records::of_run}) {
    std::vector<std::string>& own = records.*notes;
    for (std::string& note : more.*notes) {
      if (!contains(own, note)) own.push_back(std::move(note));
    }
  }
  records.changed = records.changed || more.changed;
  records.unmatched.insert(records.unmatched.end(), more.unmatched.begin(), more.unmatched.end());
  for (const auto& [name, values] : more.known) {
    if (!values.unit.empty()) records.add_unit(name, values.unit);
    ValueFacts& own = records.known[name];
    if (own.other_unit.empty()) own.other_unit = values.other_unit;
    if (!own.type) own.type = values.type;
  }
}

}  // namespace tally
