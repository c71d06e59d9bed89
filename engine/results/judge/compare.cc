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

 private:
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

void note_lonely(const std::string& table, const std::vector<const Record*>& rows,
                 const char* where, const std::set<std::string>& parameters, RunComparison& out) {
  constexpr size_t kMost = 3;
  if (rows.empty()) return;
  std::vector<std::string> names;
  for (size_t i = 0; i < rows.size() && i < kMost; ++i)
    names.push_back(name_of(*rows[i], parameters));
  if (rows.size() > kMost) names.emplace_back("...");
  out.notes.push_back(fmt::format("{}: {} row{} only in the {} run: {}", table, rows.size(),
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
    note_lonely(pair.name, only_before, "first", comparer.free(), *out);
    if (!only_before.empty()) {
      const std::vector<std::string>& lost = pair.other.missing_rows;
      out->lost_rows = out->lost_rows || !lost.empty();
      for (const std::string& note : lost)
        out->notes.push_back(pair.name + ": second run: " + note);
    }
    note_lonely(pair.name, only_after, "second", comparer.free(), *out);
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

// The values of `by` in the order of the workflow, which is that of the workpackages' ids: the
// position of each value. The order of the rows is that of the table's `sort`.
std::map<std::string, int> order_of_values(const std::vector<Record>& rows, const std::string& by) {
  std::map<std::string, int> first;  // workpackage
  for (const Record& row : rows) {
    const auto [entry, is_new] = first.try_emplace(parameter_text(row, by), row.id);
    if (!is_new) entry->second = std::min(entry->second, row.id);
  }
  return first;
}

void note_base(const std::map<std::string, int>& order, const std::string& by,
               std::vector<std::string>& notes) {
  if (order.empty()) return;
  const auto first = std::ranges::min_element(
      order, [](const auto& a, const auto& b) { return a.second < b.second; });
  std::string note =
      fmt::format("the base is {}={}, the first value in the workflow", by, first->first);
  if (!contains(notes, note)) notes.push_back(std::move(note));
}

}  // namespace

Status compare_by(const Benchmark& benchmark, const std::vector<TablePair>& tables,
                  const CompareOptions& options, uint64_t seed, RunComparison* out) {
  RowComparer comparer(benchmark, options, seed, *out);
  out->one_run = true;
  for (const TablePair& pair : tables) {
    const std::map<std::string, int> order = order_of_values(pair.base.rows, options.by);
    const auto position = [&](const Record& row) {
      return order.at(parameter_text(row, options.by));
    };
    std::unordered_map<std::string, const Record*> bases;
    std::set<std::string> seen;
    for (const Record& row : pair.base.rows) {
      const std::string key = comparer.key(row);
      const auto [entry, is_new] = bases.emplace(key, &row);
      if (position(row) < position(*entry->second)) entry->second = &row;
      if (!seen.insert(key + '\0' + parameter_text(row, options.by)).second) {
        return Status::error(fmt::format(
            "table '{}': several rows have {}={} and otherwise the same parameters; let the "
            "analyser reduce iterations to one row",
            pair.name, options.by, parameter_text(row, options.by)));
      }
    }
    for (const Record& row : pair.base.rows) {
      const Record* base = bases.at(comparer.key(row));
      if (base != &row) comparer.add(pair, *base, row);
    }
    note_base(order, options.by, out->notes);
  }
  if (out->rows.empty())
    return Status::error(
        fmt::format("no two rows differ in '{}' alone; nothing can be compared by it", options.by));
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
