#include "engine/results/table/marks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/text.h"
#include "engine/results/table/columns.h"
#include "engine/workflow/table_names.h"

namespace tally {

namespace {

// Whether the name is that of a number of matches or of repeats: rate_cnt, rate_n, rate_avg_n.
bool is_count_of(const std::string& pattern, const std::string& name) {
  const std::string rest = name.substr(pattern.size());
  return starts_with(rest, "_cnt") || (rest.size() > 1 && rest.substr(rest.size() - 2) == "_n");
}

}  // namespace

bool names_reused(const Record& row, const TableColumn& column) {
  if (row.reused_values->empty()) return false;
  const std::set<std::string>& names = column.info.sources;
  return std::ranges::any_of(*row.reused_values, [&](const std::string& pattern) {
    return std::ranges::any_of(names,
                               [&](const std::string& name) { return is_value_of(name, pattern); });
  });
}

std::map<std::string, double> short_values_of(const Record& row,
                                              const std::set<std::string>& names) {
  std::map<std::string, double> found;
  if (row.short_values->empty() || !row.measured()) return found;
  for (const auto& [pattern, seconds] : *row.short_values) {
    if (std::ranges::any_of(names, [&, &of = pattern](const std::string& name) {
          return is_value_of(name, of) && !is_count_of(of, name);
        }))
      found.emplace(pattern, seconds);
  }
  return found;
}

std::map<std::string, double> short_values_of(const Record& row, const TableColumn& column) {
  if (row.short_values->empty() && row.short_baselines->empty()) return {};
  std::map<std::string, double> found = short_values_of(row, column.info.sources);
  const auto baseline = row.short_baselines->find(column.info.name);
  if (baseline != row.short_baselines->end() && row.measured())
    found.insert(baseline->second.begin(), baseline->second.end());
  return found;
}

std::map<std::string, double> short_values_of(const Record& row,
                                              const std::vector<TableColumn>& columns) {
  std::map<std::string, double> found;
  if (row.short_values->empty() && row.short_baselines->empty()) return found;
  for (const TableColumn& column : columns) found.merge(short_values_of(row, column));
  return found;
}

namespace {

// The disturbances of the baseline rows of the columns.
template <typename Columns>
Disturbance disturbed_baselines_of(const Record& row, const Columns& columns) {
  Record all;
  if (row.disturbed_baselines->empty() || !row.measured()) return {};
  for (const TableColumn& column : columns) {
    const auto found = row.disturbed_baselines->find(column.info.name);
    if (found != row.disturbed_baselines->end()) all.add_disturbance(found->second);
  }
  return all.disturbance;
}

template <typename Columns>
std::string machine_marks_of(const Record& row, const Columns& columns) {
  const Disturbance baseline = disturbed_baselines_of(row, columns);
  std::string marks;
  add_mark(row.busy > 0 || baseline.busy(), kBusy, &marks);
  add_mark(row.throttled > 0 || baseline.throttled(), kThrottled, &marks);
  return marks;
}

}  // namespace

std::string marks_of(const Record& row, const std::vector<TableColumn>& columns) {
  std::string marks = machine_marks_of(row, columns);
  add_mark(!short_values_of(row, columns).empty(), kShort, &marks);
  return marks;
}

std::string marks_of(const Record& row, const TableColumn& column) {
  std::string marks = machine_marks_of(row, std::span(&column, 1));
  add_mark(!short_values_of(row, column).empty(), kShort, &marks);
  return marks;
}

Origin origin_of(const Benchmark& benchmark, const Record& row, const TableColumn& column) {
  Origin origin = Origin::none;
  for (const std::string& name : column.info.sources) {
    const std::string pattern = pattern_of(benchmark, name);
    if (row.reused_values->count(pattern) != 0) {
      origin = Origin::reused;
    } else if (is_match_value(benchmark, pattern)) {
      return Origin::measured;
    }
  }
  return origin;
}

std::string RowsNote::rows_text() const {
  std::string text = rows.size() == 1 ? "row " : "rows ";
  for (size_t i = 0; i < rows.size();) {
    size_t last = i;
    while (last + 1 < rows.size() && rows[last + 1] == rows[last] + 1) ++last;
    text += fmt::format("{}{}", i == 0 ? "" : ", ", rows[i] + 1);
    if (last > i) text += fmt::format("{}{}", last == i + 1 ? ", " : " to ", rows[last] + 1);
    i = last + 1;
  }
  return words.mark.empty() ? text : text + " " + words.mark;
}

std::string RowsNote::text() const {
  std::string what = cores > 0 ? fmt::format("up to {:.1f} cores of this machine", cores) : "";
  if (!words.middle.empty()) what += (what.empty() ? "" : " and ") + words.middle;
  return words.begin + what + words.end;
}

void add_row(size_t row, double cores, RowsNote::Words words, std::vector<RowsNote>* notes) {
  auto found =
      std::ranges::find_if(*notes, [&](const RowsNote& note) { return note.words == words; });
  if (found == notes->end()) found = notes->insert(found, {std::move(words), {}, 0});
  found->rows.push_back(row);
  found->cores = std::max(found->cores, cores);
}

namespace {

// `when`: behind "during the measurement".
void add_disturbed_row(size_t row, const Disturbance& one, const std::string& when,
                       std::vector<RowsNote>* notes) {
  if (one.busy())
    add_row(row, one.cores,
            {kBusy, "other programs used ", one.gpu_users.str(),
             fmt::format(" during the measurement{}; measure again on a quiet machine", when)},
            notes);
  if (one.throttled())
    add_row(
        row, 0,
        {kThrottled,
         fmt::format("the machine was slower than it should be during the measurement{}: ", when),
         one.throttling.str(),
         {}},
        notes);
}

void add_short_row(size_t row, const std::map<std::string, double>& values,
                   std::vector<RowsNote>* notes) {
  std::vector<std::string> names;
  for (const auto& [name, seconds] : values) names.push_back("'" + name + "'");
  add_row(row, 0,
          {kShort,
           fmt::format("{} {} measured for less than {:g} s", join(names, ", "),
                       names.size() == 1 ? "was" : "were", kSteadySeconds),
           {},
           "; measure longer"},
          notes);
}

}  // namespace

bool status_is_ours(const Benchmark& benchmark) {
  return benchmark.rules.own_columns && find_parameter(benchmark, kStatusColumn) == nullptr &&
         find_pattern(benchmark, kStatusColumn) == nullptr;
}

bool shows_status(const Benchmark& benchmark, const std::vector<TableColumn>& columns) {
  return status_is_ours(benchmark) && std::ranges::any_of(columns, [](const Column& column) {
           return column.name.value == kStatusColumn && column.expression.value.empty();
         });
}

const char* state_word(const Record& row) {
  return row.reused ? "reused" : state_name(row.state);
}

std::string state_mark(const Record& row) {
  std::string word = row.measured() ? state_word(row) : state_name(row.state);
  for (char& c : word) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return word;
}

// Adds the column that marks failed, unfinished and expected rows, if there are such rows and no
// column shows it.
void mark_states(const Benchmark& benchmark, ResultTable& out) {
  const auto marked = [](const Record& row) { return !row.measured() || row.reused; };
  const bool any = std::ranges::any_of(out.rows, marked);
  if (!any || !benchmark.rules.rows_are_marked || shows_status(benchmark, out.columns)) return;
  const TableColumn column = own_column("status", kStatusColumn);
  out.columns.push_back(column);
  for (Record& row : out.rows) {
    const std::string word = marked(row) ? state_mark(row) : state_word(row);
    row.values.set(column.info.name, Value{word}, Asked::asked);
  }
}

// A number from a machine that others used, or that was throttled, has that mark wherever it is
// shown.
void mark_disturbed(const Benchmark& benchmark, ResultTable& out) {
  const auto disturbed = [&](const Record& row) { return !marks_of(row, out.columns).empty(); };
  if (!benchmark.rules.rows_are_marked || std::ranges::none_of(out.rows, disturbed)) return;
  const bool taken = std::ranges::any_of(out.columns, [](const TableColumn& other) {
    return to_lower(other.info.title) == "machine";  // a workflow's own column
  });
  const TableColumn column = own_column("machine", taken ? "machine state" : "machine");
  out.columns.push_back(column);
  // Rows of one run are often disturbed alike: one note for all of them.
  std::vector<RowsNote> notes;
  std::vector<RowsNote> short_notes;
  for (size_t i = 0; i < out.rows.size(); ++i) {
    Record& row = out.rows[i];
    if (!disturbed(row)) continue;
    row.values.set(column.info.name, Value{marks_of(row, out.columns)});
    if (const auto too_short = short_values_of(row, out.columns); !too_short.empty())
      add_short_row(i, too_short, &short_notes);
    const auto times = [&](int count) {
      return row.all_repeats > 1 ? fmt::format(" of {} of {} repeats", count, row.all_repeats)
                                 : std::string();
    };
    Disturbance busy = row.disturbance, throttled = row.disturbance;
    busy.throttling = {};
    throttled.cores = 0;
    throttled.gpu_users = {};
    add_disturbed_row(i, busy, times(row.busy), &notes);
    add_disturbed_row(i, throttled, times(row.throttled), &notes);
    add_disturbed_row(i, disturbed_baselines_of(row, out.columns), " of its baseline row", &notes);
  }
  for (const RowsNote& note : notes) out.notes.push_back({note.rows_text(), note.text(), true});
  for (const RowsNote& note : short_notes)
    out.notes.push_back({note.rows_text(), note.words.begin + note.words.end});
}

// Work that has not ended is no result, also where a key tells how it stands: the row would be another
// one when it has.
void leave_out_unfinished(const Benchmark& benchmark, ResultTable& out) {
  if (!benchmark.rules.rows_are_marked) return;
  const size_t all = out.rows.size();
  const size_t left_out =
      std::erase_if(out.rows, [](const Record& row) { return row.unfinished(); });
  if (left_out == 0) return;
  out.notes.push_back(
      {"", fmt::format("{} of {} rows {} not ended and {} not written to the database", left_out,
                       all, left_out == 1 ? "has" : "have", left_out == 1 ? "is" : "are")});
}

// A database has only the columns of the input. A failed or expected row is left out, because a
// later run would find its number without the mark.
void leave_out_failed(const Benchmark& benchmark, ResultTable& out) {
  if (!benchmark.rules.rows_are_marked) return;
  const size_t all = out.rows.size();
  for (const Record& row : out.rows) {
    if (row.measured()) continue;
    for (const std::string& note : row.notes) out.notes.push_back({state_mark(row), note, true});
  }
  std::set<std::string> words;
  for (const Record& row : out.rows) {
    if (!row.measured())
      words.insert(row.state == State::expected ? "ended as `expect` says"
                                                : "are " + state_mark(row));
  }
  const auto left = [](const Record& row) { return !row.measured(); };
  std::erase_if(out.rows, left);
  const size_t left_out = all - out.rows.size();
  if (left_out == 0) return;
  out.notes.push_back(
      {"", fmt::format("{} of {} rows {} and {} not written to the database; a key 'status' would "
                       "take them in",
                       left_out, all, join({words.begin(), words.end()}, ", "),
                       left_out == 1 ? "is" : "are")});
}

// A row that shows reused work alone is in the database already, or measured nothing: under this
// run's name, its number would be taken for another measurement.
void leave_out_reused(const Benchmark& benchmark, ResultTable& out) {
  if (!benchmark.rules.rows_are_marked) return;
  const auto reused = [&](const Record& row) {
    if (row.reused_values->empty()) return false;
    bool any = false;
    for (const TableColumn& column : out.columns) {
      if (!row.values.has(column.info.name)) continue;
      const Origin origin = origin_of(benchmark, row, column);
      if (origin == Origin::measured) return false;
      any = any || origin == Origin::reused;
    }
    return any;
  };
  const size_t all = out.rows.size();
  std::erase_if(out.rows, reused);
  const size_t left_out = all - out.rows.size();
  if (left_out == 0) return;
  out.notes.push_back(
      {"", fmt::format("{} of {} rows {} REUSED and not written to the database; a key 'status' "
                       "would take them in",
                       left_out, all, left_out == 1 ? "is" : "are")});
}

// Rows in the database of which only a table says something.
void note_marks(const Benchmark& benchmark, ResultTable& out) {
  if (!benchmark.rules.rows_are_marked) return;
  const auto disturbed =
      std::ranges::count_if(out.rows, [](const Record& row) { return row.disturbance.any(); });
  const auto too_short = std::ranges::count_if(
      out.rows, [&](const Record& row) { return !short_values_of(row, out.columns).empty(); });
  if (too_short != 0)
    out.notes.push_back({"", fmt::format("{} of {} rows in the database have values that were "
                                         "measured for less than {:g} s; a table marks them SHORT",
                                         too_short, out.rows.size(), kSteadySeconds)});
  if (disturbed != 0)
    out.notes.push_back({"", fmt::format("{} of {} rows in the database were measured on a busy or "
                                         "throttled machine; a table marks them",
                                         disturbed, out.rows.size())});
  const auto reused = std::ranges::count_if(out.rows, [&](const Record& row) {
    return std::ranges::any_of(
        out.columns, [&](const TableColumn& column) { return is_reused(benchmark, row, column); });
  });
  if (reused != 0 && !shows_status(benchmark, out.columns))
    out.notes.push_back({"", fmt::format("{} of {} rows in the database have values of reused "
                                         "work; a table marks them REUSED",
                                         reused, out.rows.size())});
}

}  // namespace tally
