// The rows of a result: one record for each result line, from which tables are made. Their columns
// are described in table/column_info.h.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/base/compact.h"
#include "engine/base/diagnostics.h"
#include "engine/python/value.h"
#include "engine/results/read/patterns.h"
#include "engine/results/read/rows_reader.h"
#include "engine/results/rows/point_key.h"
#include "engine/statistics/intervals.h"
#include "engine/workflow/workflow.h"
#include "engine/workpackage/measured.h"
#include "engine/workpackage/workpackage.h"

namespace tally {

inline constexpr const char* kBusy = "BUSY";
inline constexpr const char* kThrottled = "THROTTLED";
inline constexpr const char* kShort = "SHORT";
inline constexpr const char* kReused = "REUSED";

// Adds the mark to a list of marks, if it is one of them.
inline void add_mark(bool is_marked, const char* mark, std::string* marks) {
  if (!is_marked) return;
  if (!marks->empty()) *marks += ' ';
  *marks += mark;
}

// Whether rows without a value are a surprise. found: they are none, because it is a parameter, a
// built-in, or a pattern's value. asked: every row has been asked for it, as an expression, a
// statistic of repeats or a mark.
enum class Asked { found, asked };

// The names of the values that rows of one origin have in common, each with a number: a row's cells
// are in the order of the numbers. Names are only added, so that a number keeps its meaning.
class RowColumns {
 public:
  size_t size() const { return names_.size(); }
  const std::string& name(size_t number) const { return names_[number]; }
  bool asked(size_t number) const { return asked_[number]; }
  // -1: there is none of that name.
  int find(std::string_view name) const;
  // Adds the name if it is new. One that was asked for stays so.
  int add(std::string_view name, Asked asked = Asked::found);

 private:
  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  std::vector<std::string> names_;
  std::vector<bool> asked_;
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
  // Adds the name if it is new. Cells made without columns get their own.
  void set(std::string_view name, Value value, Asked asked = Asked::found);
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

// The repeats' answer about one value of a point. A sample is one repeat. Repeats that failed, and
// those without the value, are not in it.
struct Summary {
  statistics::Sample sample;  // in the order of the repeats
  int repeats = 0;            // all repeats of the row, failed ones included
  double value = 0;           // the column's statistic of the sample
  // The bounds that `uncertainty` asks for: the confidence interval; value -+ MAD; the range.
  std::optional<statistics::Interval> interval;
  // `uncertainty: ci` of fewer than six repeats: the range, which is not an interval of 95 %.
  bool too_few = false;
  statistics::Outliers outliers;
  signed char decimals = -1;  // the most that a number of the sample was printed with; -1: unknown
};

// A value that was measured for less (`measured_over`) makes its row SHORT.
inline constexpr double kSteadySeconds = 1;

// The values of one repeat of a row.
struct Repeat {
  Cells values;
  // The ids of the workpackages that give a value, where these are only some that it depends on.
  // Several repeats may share one such workpackage, whose value was measured once.
  Rare<std::map<std::string, std::set<int>>> from;
};

// Marks of workpackages of an earlier step, for the outputs that show a value of theirs.
struct MarksOfEarlier {
  std::set<std::string> names;  // patterns that have such a value, and those computed from them
  bool reused = false;
  State state = State::done;  // any other: they are no measurement
  std::vector<Disturbance> disturbances;
};

// One line of a result: parameters of the workpackage and its parents, built-ins, and patterns with
// statistics. Ordered by the workpackage's id.
struct Record {
  Cells values;
  std::vector<std::string> notes;  // "out of memory", "no baseline row": shown below the table
  // The state of its workpackage. With several iterations, it is failed only if all of them failed.
  State state = State::done;
  bool reused = false;  // it, or a workpackage that gives it a value
  // Marks that an output gives to the row if it shows one of their values.
  Rare<std::vector<MarksOfEarlier>> earlier;
  // Gives the row those marks. `shown`: the patterns that an output shows.
  void take_marks_of_earlier(const std::set<std::string>& shown);
  // Patterns whose values come from reused work alone (origin_of()).
  Rare<std::set<std::string>> reused_values;
  // Patterns whose values were measured for less than kSteadySeconds: the fewest seconds of a
  // repeat.
  Rare<std::map<std::string, double>> short_values;
  // The same of the baseline row's values in a column that is relative to it, by column_key().
  Rare<std::map<std::string, std::map<std::string, double>>> short_baselines;
  // The disturbance of that baseline row's measurement.
  Rare<std::map<std::string, Disturbance>> disturbed_baselines;
  int id = 0;                          // the workpackage's
  PointKey point;                      // that of its workpackage, or of the match it comes from
  Common<std::string> analyser, step;  // of the workpackage
  int iteration = 0;                   // of the workpackage, where each iteration has a row; else 0
  std::vector<std::string> unmatched;  // patterns that matched nothing in its files
  int run = 0;                         // the run's id
  // The values of each repeat (workpackages that `reduce` made one row of), in the order of
  // iterations, without those that failed. Filled only if an output asks for statistics of them.
  std::vector<Repeat> repeats;
  int all_repeats = 1;  // those that failed included
  Rare<std::map<int, int>>
      repeats_above;  // of each workpackage in Repeat::from: the repeats of its point
  // Workpackages of the row during which other programs used the machine, and those during which it
  // was throttled; the most cores that others used, and all that was noticed.
  int busy = 0, throttled = 0;
  Disturbance disturbance;
  // The summaries of the columns with `statistic` or `better`, by ColumnInfo::name. Only in a
  // ResultTable.
  std::map<std::string, Summary> summaries;
  // A failed or lost workpackage may have printed a number before it ended. References, baselines
  // and databases ignore such numbers.
  bool failed() const { return has_failed(state); }
  RareText no_job_use;  // why values of its first workpackage's job are missing, a clause
  void add_disturbance(const Disturbance& one);
  // Not run yet, or under way.
  bool unfinished() const { return !failed() && !finished_well(state); }
  // Whether its numbers are a measurement. The numbers of a failed, unfinished or expected
  // (`expect: oom`) workpackage, and of one whose output has changed, are shown and marked, and are
  // compared with nothing.
  bool measured() const { return state == State::done; }
  // "failed", "has not ended": why a row that is not measured() has no number that counts.
  const char* why_not_measured() const;
};

// The values of one name in rows that mostly share their columns.
class ValuesOf {
 public:
  explicit ValuesOf(std::string name) : name_(std::move(name)) {}
  // Null: None.
  const Value* in(const Record& row) const {
    if (row.values.columns().get() != columns_) {
      columns_ = row.values.columns().get();
      number_ = columns_ == nullptr ? -1 : columns_->find(name_);
    }
    return row.values.cell(number_);
  }

 private:
  std::string name_;
  mutable const RowColumns* columns_ = nullptr;  // of the row before
  mutable int number_ = -1;
};

// Facts about the values of a name, whether or not a row has one.
struct ValueFacts {
  std::optional<ValueType> type;  // of a parameter or pattern
  std::string unit;               // empty: none
  // A second unit: another pattern or parameter of the same name has it.
  std::string other_unit;
};

struct Records {
  std::shared_ptr<RowColumns> columns = std::make_shared<RowColumns>();  // of rows made here
  std::vector<Record> rows;
  std::vector<std::string> notes;         // about workpackages that have no row
  std::vector<std::string> missing_rows;  // why rows or repeats are missing: some of these notes
  // The workpackages for which these rows are missing, with their parameters.
  std::vector<Record> missing;
  std::vector<std::string> of_run;  // about the run (run_notes.h), which commands print once
  bool changed =
      false;  // the output of a workpackage changed after its end, and thus counts in nothing
  std::vector<Unmatched> unmatched;
  std::map<std::string, ValueFacts> known;  // by name
  // Sets the unit of a name that has none, or keeps it as the second one.
  void add_unit(const std::string& name, const std::string& unit);
};

// Gives the rows columns of their own, equal to those that they have: what is added to them is not
// of other tables with the same rows.
void give_own_columns(std::vector<Record>& rows);

// Appends the rows of `more` to `records`, and what it knows. The first unit of a name stays.
void append(Records& records, Records more);

}  // namespace tally
