#include "engine/results/judge/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <future>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "engine/base/in_thread.h"
#include "engine/base/text.h"
#include "engine/results/rows/point_key.h"
#include "engine/results/table/columns.h"
#include "engine/results/table/marks.h"

namespace tally {
namespace {

std::string parameter_text(const Record& row, const std::string& name) {
  const std::string* value = row.point.value(name);
  return value == nullptr ? std::string() : *value;
}

// Joins rows by their free parameters, and collects the comparisons.
class RowComparer {
 public:
  RowComparer(const Benchmark& benchmark, const CompareOptions& options, uint64_t seed,
              RunComparison& out)
      : benchmark_(benchmark),
        free_(free_parameters(benchmark)),
        order_(parameter_order(benchmark)),
        options_(options),
        seed_(seed),
        out_(out) {
    free_.erase(options.by);
  }

  std::string key(const Record& row) const {
    return fmt::format("{}\1{}", *row.analyser, row.point.key(free_));
  }
  // The keys of the rows of one side of the pair.
  std::vector<std::string> keys(const TablePair& pair, const std::vector<Record>& rows) const {
    std::vector<std::string> keys;
    keys.reserve(rows.size());
    for (const Record& row : rows)
      keys.push_back(pair.joined_on ? row.point.text(*pair.joined_on) : key(row));
    return keys;
  }

  // The rows of a table by their keys.
  struct Index {
    std::vector<std::string> keys;  // of each row
    std::unordered_map<std::string_view, size_t> indexes;
    // The index of the row. In most runs the rows have the same order, so that it is `likely`.
    std::optional<size_t> find(const std::string& key, size_t likely) const {
      if (likely < keys.size() && keys[likely] == key) return likely;
      const auto found = indexes.find(key);
      return found == indexes.end() ? std::nullopt : std::optional<size_t>(found->second);
    }
  };
  // An error if two rows have the same key.
  Status index(const TablePair& pair, Index* out) const {
    const std::vector<Record>& rows = pair.base.rows;
    out->keys = keys(pair, rows);
    out->indexes.reserve(rows.size());
    for (size_t i = 0; i < rows.size(); ++i) {
      const auto [entry, is_new] = out->indexes.emplace(out->keys[i], i);
      if (!is_new) return same_key(pair.name, rows[entry->second], rows[i]);
    }
    return Status::ok();
  }
  Status same_key(const std::string& table, const Record& one, const Record& other) const {
    return Status::error(fmt::format(
        "table '{}': the rows of workpackages {} and {} have the same parameters{}, so that rows "
        "of two runs cannot be told apart; let the analyser reduce iterations to one row{}",
        table, one.id, other.id, options_.by.empty() ? "" : " but for '" + options_.by + "'",
        options_.by.empty() ? "" : ", or compare the values of one run: name one run"));
  }

  void expect(size_t more) {
    out_.rows.reserve(out_.rows.size() + more);
    sources_.reserve(sources_.size() + more);
  }

  void add(const TablePair& tables, const Record& base, const Record& other) {
    for (const TableColumn& column : tables.other.columns) {
      if (!is_metric(column)) continue;
      const auto a = base.summaries.find(column.info.name);
      const auto b = other.summaries.find(column.info.name);
      if (a == base.summaries.end() || b == other.summaries.end()) continue;
      add(tables.name, column, {base, a->second, a->second.sample},
          {other, b->second, b->second.sample});
    }
  }

  void add_halves(const TablePair& tables, const Record& row) {
    for (const TableColumn& column : tables.base.columns) {
      const auto found = row.summaries.find(column.info.name);
      if (!is_metric(column) || found == row.summaries.end()) continue;
      statistics::Sample halves[2];
      for (size_t i = 0; i < found->second.sample.size(); ++i)
        halves[i % 2].push_back(found->second.sample[i]);
      add(tables.name, column, {row, found->second, halves[0]}, {row, found->second, halves[1]});
    }
  }

  // Decides all rows together, and keeps the parameters in which they differ.
  void finish() {
    if (sources_.empty()) return;
    std::vector<statistics::Comparison> all;
    std::vector<bool> lower_is_better;
    all.reserve(out_.rows.size());
    for (const ComparedRow& row : out_.rows) {
      all.push_back(row.result);
      lower_is_better.push_back(row.lower_is_better);
    }
    statistics::decide(all, lower_is_better, options_.threshold);
    for (size_t i = 0; i < all.size(); ++i) out_.rows[i].result = all[i];
    const auto differ = [&](const std::string& name) {
      const std::string first = parameter_text(*sources_.front(), name);
      return std::ranges::any_of(
          sources_, [&](const Record* row) { return parameter_text(*row, name) != first; });
    };
    for (const std::string& name : order_) {
      if (free_.count(name) != 0 && differ(name)) out_.parameters.push_back(name);
    }
    for (size_t i = 0; i < out_.rows.size(); ++i) {
      out_.rows[i].values.reserve(out_.parameters.size());
      for (const std::string& name : out_.parameters)
        out_.rows[i].values.push_back(parameter_text(*sources_[i], name));
    }
  }

  const std::set<std::string>& free() const { return free_; }

  // Notes the rows of `others` whose workpackage failed or has not ended, and would have had more of
  // them: `rows` tell apart what it printed. `lacks(base, other)`: whether the other's run, or its
  // value of `by`, has no row of the point of `base`.
  template <typename Lacks>
  void note_lost(const TablePair& pair, const std::vector<const Record*>& bases,
                 const std::vector<const Record*>& others, const Lacks& lacks, const char* whose) {
    std::unordered_multimap<std::string, const Record*> measured;  // by work_key()
    for (const Record* other : others) {
      if (other->measured() || other->state == State::expected) continue;
      if (measured.empty()) {
        for (const Record* base : bases)
          if (base->measured()) measured.emplace(work_key(pair, *base), base);
      }
      const auto [first, last] = measured.equal_range(work_key(pair, *other));
      if (std::none_of(first, last, [&](const auto& base) { return lacks(*base.second, *other); }))
        continue;
      out_.lost_rows = true;
      out_.notes.push_back(fmt::format("{}: {}workpackage {} ({}) {}; rows of it are missing",
                                       pair.name, whose, other->id, *other->step,
                                       other->why_not_measured()));
    }
  }
  // The same of workpackages that have no row at all. `rows`: bases without a partner.
  void note_missing(const TablePair& pair, const ResultTable& lacking,
                    const std::vector<const Record*>& rows, const char* whose) {
    if (rows.empty() || lacking.missing_rows.empty()) return;
    out_.lost_rows = true;
    for (const std::string& note : lacking.missing_rows)
      out_.notes.push_back(pair.name + ": " + whose + note);
  }

 private:
  // The key of the workpackage whose output the row shows: equal for all of its rows.
  std::string work_key(const TablePair& pair, const Record& row) const {
    std::set<std::string> names = pair.joined_on ? *pair.joined_on : free_;
    for (const Analyser& analyser : benchmark_.analysers) {
      if (!pair.joined_on && analyser.name.value != *row.analyser) continue;
      for (const Text& name : analyser.rows) names.erase(name.value);
    }
    return pair.joined_on ? row.point.text(names)
                          : fmt::format("{}\1{}", *row.analyser, row.point.text(names));
  }

  // A side of a comparison: the values of one metric, of all repeats of its row or of half of them.
  struct Side {
    const Record& row;
    const Summary& summary;
    const statistics::Sample& sample;
    int lacking() const { return summary.repeats - static_cast<int>(summary.sample.size()); }
  };

  void add(const std::string& table, const TableColumn& column, const Side& first,
           const Side& second) {
    const Record& base = first.row;
    const Record& other = second.row;
    ComparedRow row;
    row.table = table;
    row.metric = column.info.title;
    row.base_label = parameter_text(base, options_.by);
    row.other_label = parameter_text(other, options_.by);
    row.lower_is_better = column.better == Better::lower;
    row.base_state = base.state;
    row.other_state = other.state;
    if (!base.measured() || !other.measured())
      row.why_not = (base.measured() ? other : base).why_not_measured();
    row.base_mark = marks_of(base, column);
    row.other_mark = marks_of(other, column);
    row.base_failed = first.lacking();
    if (&first.row != &second.row) row.other_failed = second.lacking();
    row.base_repeats = first.summary.repeats;
    row.other_repeats = second.summary.repeats;
    row.base_reused = is_reused(benchmark_, base, column);
    row.other_reused = is_reused(benchmark_, other, column);
    // The numbers of a row that failed or goes on are not a measurement. Reused numbers are one of
    // another run, perhaps of the one that they would be compared with.
    const statistics::Sample none;
    row.result = statistics::compare(base.measured() && !row.base_reused ? first.sample : none,
                                     other.measured() && !row.other_reused ? second.sample : none,
                                     seed_ + out_.rows.size());
    out_.rows.push_back(std::move(row));
    sources_.push_back(&base);
  }

  const Benchmark& benchmark_;
  std::set<std::string> free_;
  std::vector<std::string> order_;
  const CompareOptions& options_;
  uint64_t seed_;
  RunComparison& out_;
  std::vector<const Record*> sources_;  // of each compared row
};

// "n=2, label=x", or "row of workpackage 3" if the parameters say nothing.
std::string name_of(const Record& row, const std::set<std::string>& parameters) {
  std::string text;
  for (const std::string& name : parameters) {
    const std::string value = parameter_text(row, name);
    if (!value.empty()) text += (text.empty() ? "" : ", ") + name + "=" + value;
  }
  return text.empty() ? fmt::format("row of workpackage {}", row.id) : text;
}

// The parameters that are one value in all rows before, and another one after: they keep every row
// from having a partner.
std::string changed_constants(const std::set<std::string>& parameters,
                              const std::vector<TablePair>& tables) {
  std::string changed;
  for (const std::string& name : parameters) {
    std::set<std::string> before;
    std::set<std::string> after;
    for (const TablePair& pair : tables) {
      for (const Record& row : pair.base.rows) before.insert(parameter_text(row, name));
      for (const Record& row : pair.other.rows) after.insert(parameter_text(row, name));
    }
    if (before.size() != 1 || after.size() != 1 || before == after) continue;
    changed += fmt::format("{}'{}' ({} and {})", changed.empty() ? "" : ", ", name, *before.begin(),
                           *after.begin());
  }
  return changed;
}

// `where`: "only in the first run", said of the rows.
void note_lonely(const std::string& table, const std::vector<const Record*>& rows,
                 const std::string& where, const std::set<std::string>& parameters,
                 RunComparison& out) {
  constexpr size_t kMost = 3;
  if (rows.empty()) return;
  std::vector<std::string> names;
  for (size_t i = 0; i < rows.size() && i < kMost; ++i)
    names.push_back(name_of(*rows[i], parameters));
  if (rows.size() > kMost) names.emplace_back("...");
  out.notes.push_back(fmt::format("{}: {} row{} {}: {}", table, rows.size(),
                                  rows.size() == 1 ? " is" : "s are", where, join(names, "; ")));
}

// The run of which no row is a measurement, a sentence. Empty: each has one.
std::string unmeasured_run(const std::vector<TablePair>& tables) {
  for (const bool first : {true, false}) {
    std::vector<const Record*> rows;
    bool measured = false;
    for (const TablePair& pair : tables) {
      for (const Record& row : (first ? pair.base : pair.other).rows) {
        measured = measured || row.measured();
        rows.push_back(&row);
      }
    }
    if (measured || rows.empty()) continue;
    return fmt::format(
        "the {} run has nothing to compare: {} {}", first ? "first" : "second",
        rows.size() == 1 ? "its row" : fmt::format("each of its {} rows", rows.size()),
        rows.front()->why_not_measured());
  }
  return {};
}

// Notes the rows of two runs without a partner, and why they have none.
void note_partners_lacking(const TablePair& pair, const std::vector<const Record*>& only_before,
                           const std::vector<const Record*>& only_after, RowComparer& comparer,
                           RunComparison& out) {
  constexpr const char* kWhose = "second run: ";
  note_lonely(pair.name, only_before, "only in the first run", comparer.free(), out);
  comparer.note_missing(pair, pair.other, only_before, kWhose);
  note_lonely(pair.name, only_after, "only in the second run", comparer.free(), out);
  std::vector<const Record*> after;
  for (const Record& row : pair.other.rows) after.push_back(&row);
  const auto lacks = [](const Record&, const Record&) { return true; };
  comparer.note_lost(pair, only_before, after, lacks, kWhose);
}

}  // namespace

bool is_metric(const Column& column) {
  return column.better != Better::unknown && column.relative_to.empty();
}

Status compare_runs(const Benchmark& benchmark, const std::vector<TablePair>& tables,
                    const CompareOptions& options, uint64_t seed, RunComparison* out) {
  RowComparer comparer(benchmark, options, seed, *out);
  for (const TablePair& pair : tables) {
    std::future<std::vector<std::string>> of_other =
        in_thread([&] { return comparer.keys(pair, pair.other.rows); });
    RowComparer::Index before;
    TRY(comparer.index(pair, &before));
    const std::vector<std::string> keys = of_other.get();
    std::vector<const Record*> partners(pair.base.rows.size());
    std::unordered_map<std::string, const Record*> lonely;
    std::vector<const Record*> only_after;
    comparer.expect(pair.other.rows.size());
    for (size_t i = 0; i < pair.other.rows.size(); ++i) {
      const Record& row = pair.other.rows[i];
      const std::optional<size_t> found = before.find(keys[i], i);
      const Record*& known = found ? partners[*found] : lonely[keys[i]];
      if (known != nullptr) return comparer.same_key(pair.name, *known, row);
      known = &row;
      if (found) {
        comparer.add(pair, pair.base.rows[*found], row);
      } else {
        only_after.push_back(&row);
      }
    }
    std::vector<const Record*> only_before;
    for (size_t i = 0; i < partners.size(); ++i) {
      if (partners[i] == nullptr) only_before.push_back(&pair.base.rows[i]);
    }
    note_partners_lacking(pair, only_before, only_after, comparer, *out);
  }
  if (out->rows.empty()) {
    if (std::string why = unmeasured_run(tables); !why.empty())
      return Status::error(std::move(why));
    const std::string changed = changed_constants(comparer.free(), tables);
    return Status::error(
        "no row of one run has the parameters of a row of the other" +
        (changed.empty() ? ""
                         : "; they differ in " + changed + ": name such a parameter with --by"));
  }
  comparer.finish();
  return Status::ok();
}

namespace {

// The rows of a table that have the parameter `by`.
class RowsBy {
 public:
  RowsBy(const TablePair& pair, const RowComparer& comparer, std::string by)
      : comparer_(comparer), by_(std::move(by)) {
    for (const Record& row : pair.base.rows) {
      if (row.point.value(by_) != nullptr) rows_.push_back(&row);
    }
    const auto first = std::ranges::min_element(
        rows_, {}, [&](const Record* row) { return row->point.place(by_); });
    if (first == rows_.end()) return;
    first_ = value(**first);
    for (const Record& missing : pair.base.missing) {
      if (missing.point.place(by_) > (*first)->point.place(by_)) all_values_.insert(value(missing));
    }
  }

  // An error if two rows differ in nothing.
  Status index(const std::string& table) {
    for (const Record* row : rows_) {
      ++of_key_[comparer_.key(*row)];
      all_values_.insert(value(*row));
      if (!values_.emplace(value_key(*row, value(*row)), row).second) {
        return Status::error(fmt::format(
            "table '{}': several rows have {}={} and otherwise the same parameters; let the "
            "analyser reduce iterations to one row",
            table, by_, value(*row)));
      }
    }
    return Status::ok();
  }

  const std::vector<const Record*>& all() const { return rows_; }
  std::string value(const Record& row) const { return parameter_text(row, by_); }
  // The value of `by` that is the base: the first one of the workflow that has a row. The order of
  // the rows is that of the table's `sort`.
  const std::string& first() const { return first_; }
  bool is_first(const Record& row) const { return value(row) == first_; }
  // The row of the point with this value of `by`. Null: there is none.
  const Record* find(const Record& point, const std::string& value) const {
    const auto found = values_.find(value_key(point, value));
    return found == values_.end() ? nullptr : found->second;
  }
  // Whether no other row has the point.
  bool is_alone(const Record& row) const { return of_key_.at(comparer_.key(row)) == 1; }
  // The values of `by` that have rows, but for the first.
  std::set<std::string> others() const {
    std::set<std::string> values;
    for (const Record* row : rows_)
      if (!is_first(*row)) values.insert(value(*row));
    return values;
  }
  // Whether some value of `by` has no row of the point.
  bool lacks_some(const Record& row) const {
    return std::ranges::any_of(
        all_values_, [&](const std::string& value) { return find(row, value) == nullptr; });
  }

 private:
  std::string value_key(const Record& point, const std::string& value) const {
    return comparer_.key(point) + '\0' + value;
  }

  const RowComparer& comparer_;
  const std::string by_;
  std::vector<const Record*> rows_;
  std::string first_;
  std::set<std::string> all_values_;                       // of `by`, also of missing rows
  std::unordered_map<std::string, const Record*> values_;  // by value_key()
  std::unordered_map<std::string, int> of_key_;            // how many rows a point has
};

void note_base(const TablePair& pair, const RowsBy& rows, const std::string& by,
               std::vector<std::string>& notes) {
  if (rows.all().empty()) return;
  std::string note =
      fmt::format("the base is {}={}, the first value in the workflow{}", by, rows.first(),
                  pair.base.missing_rows.empty() ? "" : " that has a row");
  if (!contains(notes, note)) notes.push_back(std::move(note));
}

// The base of which no row is a measurement, a sentence. Empty: some is.
std::string unmeasured_base(const RowsBy& rows, const std::string& by) {
  const Record* last = nullptr;
  for (const Record* row : rows.all()) {
    if (!rows.is_first(*row)) continue;
    if (row->measured()) return {};
    last = row;
  }
  return last == nullptr ? std::string()
                         : fmt::format("the base, {}={}, has nothing to compare: it {}", by,
                                       rows.first(), last->why_not_measured());
}

// Notes the rows without a partner, and why they have none.
void note_partners_lacking(const TablePair& pair, const RowsBy& rows, const std::string& by,
                           RowComparer& comparer, RunComparison& out) {
  std::vector<const Record*> alone, without_base, bases, lacking, others;
  for (const Record* row : rows.all()) {
    if (rows.is_alone(*row)) {
      alone.push_back(row);
    } else if (rows.find(*row, rows.first()) == nullptr) {
      without_base.push_back(row);
    }
    (rows.is_first(*row) ? bases : others).push_back(row);
  }
  std::set<std::string> parameters = comparer.free();
  parameters.insert(by);
  note_lonely(pair.name, alone, fmt::format("without a row of another '{}'", by), parameters, out);
  note_lonely(pair.name, without_base, fmt::format("without a row of {}={}", by, rows.first()),
              parameters, out);
  for (const std::string& value : rows.others()) {
    std::vector<const Record*> without;
    for (const Record* row : bases) {
      if (!rows.is_alone(*row) && rows.find(*row, value) == nullptr) without.push_back(row);
    }
    note_lonely(pair.name, without, fmt::format("without a row of {}={}", by, value), parameters,
                out);
  }
  for (size_t i = 0; !pair.base.missing_rows.empty() && i < bases.size(); ++i) {
    if (bases[i]->measured() && rows.lacks_some(*bases[i])) lacking.push_back(bases[i]);
  }
  comparer.note_missing(pair, pair.base, lacking, "");
  const auto lacks = [&](const Record& base, const Record& other) {
    return rows.find(base, rows.value(other)) == nullptr;
  };
  comparer.note_lost(pair, bases, others, lacks, "");
}

}  // namespace

Status compare_by(const Benchmark& benchmark, const std::vector<TablePair>& tables,
                  const CompareOptions& options, uint64_t seed, RunComparison* out) {
  RowComparer comparer(benchmark, options, seed, *out);
  out->one_run = true;
  std::string unmeasured;
  for (const TablePair& pair : tables) {
    RowsBy rows(pair, comparer, options.by);
    TRY(rows.index(pair.name));
    for (const Record* row : rows.all()) {
      const Record* base = rows.find(*row, rows.first());
      if (base != nullptr && base != row) comparer.add(pair, *base, *row);
    }
    if (unmeasured.empty()) unmeasured = unmeasured_base(rows, options.by);
    note_base(pair, rows, options.by, out->notes);
    note_partners_lacking(pair, rows, options.by, comparer, *out);
  }
  if (out->rows.empty() && !out->lost_rows)
    return Status::error(
        !unmeasured.empty()
            ? unmeasured
            : fmt::format("no two rows differ in '{}' alone; nothing can be compared by it",
                          options.by));
  comparer.finish();
  return Status::ok();
}

RunComparison compare_halves(const Benchmark& benchmark, const std::vector<TablePair>& tables,
                             const CompareOptions& options, uint64_t seed) {
  RunComparison out;
  out.one_run = true;
  RowComparer comparer(benchmark, options, seed, out);
  for (const TablePair& pair : tables) {
    for (const Record& row : pair.base.rows) comparer.add_halves(pair, row);
  }
  comparer.finish();
  return out;
}

}  // namespace tally
