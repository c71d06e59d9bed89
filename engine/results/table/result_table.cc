#include "engine/results/table/result_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <iterator>
#include <set>

#include "engine/base/text.h"
#include "engine/results/read/used_names.h"
#include "engine/results/table/columns.h"
#include "engine/results/table/origin.h"
#include "engine/results/table/repeats.h"
#include "engine/results/table/rows_note.h"
#include "engine/workflow/job_values.h"

namespace tally {
namespace {

bool has(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::vector<Column> chosen(const std::vector<Column>& all, const ColumnChoice& options) {
  std::vector<Column> columns;
  if (options.with_id) {
    Column id;
    id.name.value = "id";
    columns.push_back(id);
  }
  for (const Column& column : all) {
    const std::string& name = column.name.value;
    bool selected =
        options.select.empty() || has(options.select, name) || has(options.select, column.title);
    bool excluded =
        has(options.exclude, name) || (!column.title.empty() && has(options.exclude, column.title));
    if (selected && !excluded) columns.push_back(column);
  }
  return columns;
}

// Sorts the rows of each run separately, because JUBE does so.
void sort_each_run(const std::vector<std::string>& keys, std::vector<Record>& rows) {
  std::vector<Record> sorted;
  for (size_t begin = 0, end = 0; begin < rows.size(); begin = end) {
    const std::string id = rows[begin].values.at("id").str();
    while (end < rows.size() && rows[end].values.at("id").str() == id) ++end;
    std::vector<Record> own(std::make_move_iterator(rows.begin() + static_cast<long>(begin)),
                            std::make_move_iterator(rows.begin() + static_cast<long>(end)));
    sort_rows(keys, own);
    std::move(own.begin(), own.end(), std::back_inserter(sorted));
  }
  rows = std::move(sorted);
}

// Whether `name` is the pattern's own value or one of its statistics.
bool is_value_of(const std::string& name, const std::string& pattern) {
  if (!starts_with(name, pattern)) return false;
  const std::string suffix = name.substr(pattern.size());
  return suffix.empty() || has(match_suffixes(), suffix);
}

// Whether `name` comes from the files: a pattern, or a statistic of its matches or repeats.
bool is_pattern_value(const Benchmark& benchmark, const std::string& name) {
  const std::optional<SampleName> sample = sample_name(benchmark, name);
  if (job_value(benchmark, sample ? sample->base : name) != nullptr) return false;
  return is_match_value(benchmark, name) || sample;
}

const char* status_word(const Record& row) {
  return row.reused ? "reused" : state_name(row.state);
}

}  // namespace

std::string place(const Sources& sources, const MissedReference& missed) {
  return missed.place.empty() ? place(sources, missed.mark) : missed.place;
}

bool is_own_column(const Column& column) {
  return starts_with(column.name.value, "tally ");
}

bool status_is_ours(const Benchmark& benchmark) {
  if (benchmark.as_jube) return false;
  const auto named = [](const auto& one) { return one.name.value == kStatusColumn; };
  for (const auto& [set_name, set] : benchmark.parameter_sets) {
    if (std::any_of(set.parameters.begin(), set.parameters.end(), named)) return false;
  }
  for (const auto& [set_name, set] : benchmark.pattern_sets) {
    if (std::any_of(set.patterns.begin(), set.patterns.end(), named)) return false;
  }
  return true;
}

bool ResultTables::shows_status(const std::vector<Column>& columns) const {
  return status_is_ours(benchmark_) &&
         std::any_of(columns.begin(), columns.end(), [](const Column& column) {
           return column.name.value == kStatusColumn && column.expression.value.empty();
         });
}

std::string ResultTables::mark(const Record& row) {
  std::string word = row.measured() ? status_word(row) : state_name(row.state);
  for (char& c : word) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return word;
}

// `shown`: names_shown() of an output.
std::vector<Record> ResultTables::with_marks(std::vector<Record> rows,
                                             const std::set<std::string>& shown) const {
  std::set<std::string> patterns;
  for (Record& row : rows) {
    if (row.earlier->empty()) continue;
    if (patterns.empty()) {
      for (const std::string& name : shown) patterns.insert(pattern_of(benchmark_, name));
    }
    row.take_marks_of_earlier(patterns);
  }
  return rows;
}

// `names`: names_in() of the output. Few of them have it.
std::vector<Record> ResultTables::with_status(std::vector<Record> rows,
                                              const std::set<std::string>& names) const {
  if (names.count(kStatusColumn) == 0 || !status_is_ours(benchmark_)) return rows;
  for (Record& row : rows)
    row.values.set(kStatusColumn, Value{std::string(status_word(row))}, ColumnKind::computed);
  return rows;
}

// Values in different units do not make one column. The table is shown without the unit, because
// the run may have taken hours, and without ratios.
void ResultTables::check_units(const Table& table, ResultTable& out) const {
  if (benchmark_.as_jube) return;
  std::set<std::string> told;
  for (const Column& column : out.columns) {
    const std::string& name = column.name.value;
    const auto other = records_.other_units.find(name);
    if (other == records_.other_units.end() || !column.expression.value.empty()) continue;
    if (told.insert(name).second)
      diagnostics_.error(
          column.name.mark,
          fmt::format("table '{}': the values of '{}' are in {} and in {}", table.name.value, name,
                      records_.units.at(name), other->second),
          "give the patterns different names, or the same unit");
    out.units.erase(name);
    if (column.relative_to.empty()) continue;
    for (Record& row : out.rows) row.values.erase(column_key(column));
  }
}

// A failed row, and one that lacks a value that a reference asks for, must not disappear because the
// filter has nothing to compare.
void ResultTables::filter(const Text& filter, const Table* table, ResultTable& out) const {
  if (strip(filter.value).empty()) return;
  Matching matching =
      benchmark_.as_jube
          ? matching_rows(filter, out.rows, evaluator_, diagnostics_, WithoutValue::text)
          : matching_rows_or_failed(filter, out.rows, evaluator_, diagnostics_,
                                    WithoutValue::text_in_quotes);
  size_t dropped = matching.lacking.size();
  if (table != nullptr && !table->references.empty() && dropped != 0) {
    const std::set<size_t> missing = rows_that_miss(*table, out.rows, evaluator_, diagnostics_);
    for (const size_t i : matching.lacking) {
      if (missing.count(i) == 0) continue;
      matching.rows.push_back(i);
      --dropped;
    }
    std::sort(matching.rows.begin(), matching.rows.end());
  }
  if (dropped != 0) {
    out.notes.push_back({"", fmt::format("{} of {} rows {} left out because {} no value for the "
                                         "filter \"{}\"",
                                         dropped, out.rows.size(), dropped == 1 ? "is" : "are",
                                         dropped == 1 ? "it has" : "they have", filter.value)});
  }
  std::vector<Record> kept;
  kept.reserve(matching.rows.size());
  for (const size_t i : matching.rows) kept.push_back(std::move(out.rows[i]));
  out.rows = std::move(kept);
}

// Drops rows in which no column has a value. In Tally's own files such a row stays if it failed, or
// if a column's pattern matched nothing in its output, because this must be reported.
void ResultTables::drop_empty(ResultTable& out, bool with_id) const {
  const auto searched = [this](const Record& row, const Column& column) {
    return std::any_of(row.unmatched.begin(), row.unmatched.end(), [&](const std::string& pattern) {
      const std::optional<SampleName> sample = sample_name(benchmark_, column.name.value);
      return is_value_of(sample ? sample->base : column.name.value, pattern);
    });
  };
  const auto empty = [&](const Record& row) {
    if (row.failed() && !benchmark_.as_jube) return false;
    return std::all_of(out.columns.begin(), out.columns.end(), [&](const Column& column) {
      if (with_id && column.name.value == "id") return true;  // the run's
      if (!benchmark_.as_jube && searched(row, column)) return false;
      return !row.values.has(column_key(column));
    });
  };
  out.rows.erase(std::remove_if(out.rows.begin(), out.rows.end(), empty), out.rows.end());
}

// Adds the column that marks failed, unfinished and expected rows, if there are such rows and no column shows
// it.
void ResultTables::mark_states(ResultTable& out) const {
  const auto marked = [](const Record& row) { return !row.measured() || row.reused; };
  const bool any = std::any_of(out.rows.begin(), out.rows.end(), marked);
  if (!any || benchmark_.as_jube || shows_status(out.columns)) return;
  Column column;
  column.name.value = "tally status";  // a key that no value can have
  column.title = kStatusColumn;
  out.columns.push_back(column);
  for (Record& row : out.rows) {
    const std::string word = marked(row) ? mark(row) : status_word(row);
    row.values.set(column.name.value, Value{word}, ColumnKind::computed);
  }
}

namespace {

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

// A number from a machine that others used, or that was throttled, has that mark wherever it is
// shown.
void ResultTables::mark_disturbed(ResultTable& out) const {
  const auto disturbed = [&](const Record& row) { return !marks_of(row, out.columns).empty(); };
  if (benchmark_.as_jube || std::none_of(out.rows.begin(), out.rows.end(), disturbed)) return;
  Column column;
  column.name.value = "tally machine";  // a key that no value can have
  column.title = "machine";
  for (const Column& other : out.columns)  // a workflow's own column may have this name
    if (to_lower(other.column_title()) == column.title) column.title = "machine state";
  out.columns.push_back(column);
  // Rows of one run are often disturbed alike: one note for all of them.
  std::vector<RowsNote> notes;
  std::vector<RowsNote> short_notes;
  for (size_t i = 0; i < out.rows.size(); ++i) {
    Record& row = out.rows[i];
    if (!disturbed(row)) continue;
    row.values.set(column.name.value, Value{marks_of(row, out.columns)});
    if (const auto too_short = short_values_of(row, out.columns); !too_short.empty())
      add_short_row(i, too_short, &short_notes);
    const auto times = [&](int count) {
      return row.all_repeats > 1 ? fmt::format(" of {} of {} repeats", count, row.all_repeats)
                                 : std::string();
    };
    if (row.busy > 0) {
      add_row(i, row.disturbance.cores,
              {"BUSY", "other programs used ", row.disturbance.gpu_users.str(),
               fmt::format(" during the measurement{}; measure again on a quiet machine",
                           times(row.busy))},
              &notes);
    }
    if (row.throttled > 0) {
      add_row(i, 0,
              {"THROTTLED",
               fmt::format("the machine was slower than it should be during the measurement{}: ",
                           times(row.throttled)),
               row.disturbance.throttling.str(),
               {}},
              &notes);
    }
  }
  for (const RowsNote& note : notes) out.notes.push_back({note.rows_text(), note.text(), true});
  for (const RowsNote& note : short_notes)
    out.notes.push_back({note.rows_text(), note.words.begin + note.words.end});
}

// A database has only the columns of the input. A failed, unfinished or expected row is left out,
// because a later run would find its number without the mark.
void ResultTables::leave_out_failed(ResultTable& out) const {
  if (benchmark_.as_jube) return;
  out.rows.erase(std::remove_if(out.rows.begin(), out.rows.end(),
                                [](const Record& row) { return row.unfinished(); }),
                 out.rows.end());
  const size_t all = out.rows.size();
  for (const Record& row : out.rows) {
    if (row.measured()) continue;
    for (const std::string& note : row.notes) out.notes.push_back({mark(row), note, true});
  }
  std::set<std::string> words;
  for (const Record& row : out.rows) {
    if (!row.measured())
      words.insert(row.state == State::expected ? "ended as `expect` says" : "are " + mark(row));
  }
  const auto left = [](const Record& row) { return !row.measured(); };
  out.rows.erase(std::remove_if(out.rows.begin(), out.rows.end(), left), out.rows.end());
  const size_t left_out = all - out.rows.size();
  if (left_out == 0) return;
  out.notes.push_back(
      {"", fmt::format("{} of {} rows {} and {} not written to the database; a key 'status' would "
                       "take them in",
                       left_out, all, join({words.begin(), words.end()}, ", "),
                       left_out == 1 ? "is" : "are")});
}

// A row that shows reused work alone is in the database already, or measured nothing: under this run's
// name, its number would be taken for another measurement.
void ResultTables::leave_out_reused(ResultTable& out) const {
  if (benchmark_.as_jube) return;
  const auto reused = [&](const Record& row) {
    if (row.reused_values->empty()) return false;
    bool any = false;
    for (const Column& column : out.columns) {
      if (!row.values.has(column_key(column))) continue;
      const Origin origin = origin_of(benchmark_, row, column);
      if (origin == Origin::measured) return false;
      any = any || origin == Origin::reused;
    }
    return any;
  };
  const size_t all = out.rows.size();
  out.rows.erase(std::remove_if(out.rows.begin(), out.rows.end(), reused), out.rows.end());
  const size_t left_out = all - out.rows.size();
  if (left_out == 0) return;
  out.notes.push_back(
      {"", fmt::format("{} of {} rows {} REUSED and not written to the database; a key 'status' "
                       "would take them in",
                       left_out, all, left_out == 1 ? "is" : "are")});
}

// Rows in the database of which only a table says something.
void ResultTables::note_marks(ResultTable& out) const {
  if (benchmark_.as_jube) return;
  const auto disturbed = std::count_if(out.rows.begin(), out.rows.end(),
                                       [](const Record& row) { return row.disturbance.any(); });
  const auto too_short = std::count_if(out.rows.begin(), out.rows.end(), [&](const Record& row) {
    return !short_values_of(row, out.columns).empty();
  });
  if (too_short != 0)
    out.notes.push_back({"", fmt::format("{} of {} rows in the database have values that were "
                                         "measured for less than {:g} s; a table marks them SHORT",
                                         too_short, out.rows.size(), kSteadySeconds)});
  if (disturbed != 0)
    out.notes.push_back({"", fmt::format("{} of {} rows in the database were measured on a busy or "
                                         "throttled machine; a table marks them",
                                         disturbed, out.rows.size())});
  const auto reused = std::count_if(out.rows.begin(), out.rows.end(), [&](const Record& row) {
    return std::any_of(out.columns.begin(), out.columns.end(),
                       [&](const Column& column) { return is_reused(benchmark_, row, column); });
  });
  if (reused != 0 && !shows_status(out.columns))
    out.notes.push_back({"", fmt::format("{} of {} rows in the database have values of reused "
                                         "work; a table marks them REUSED",
                                         reused, out.rows.size())});
}

// A value that the scheduler does not have is reported with the reason.
void ResultTables::note_missing_job_value(const Column& column, ResultTable& out) const {
  const std::optional<SampleName> sample = sample_name(benchmark_, column.name.value);
  const JobValue* value = job_value(benchmark_, sample ? sample->base : column.name.value);
  if (value == nullptr || column.null_value_set || !column.expression.value.empty()) return;
  std::map<std::string, size_t> reasons;
  for (const Record& row : out.rows) {
    if (!row.values.has(column_key(column)))
      ++reasons[row.no_job_use.empty() ? value->missing : row.no_job_use.str()];
  }
  for (const auto& [reason, count] : reasons)
    out.notes.push_back({"", fmt::format("'{}' is not available in {} of {} rows: {}",
                                         column.name.value, count, out.rows.size(), reason)});
}

// Reports empty cells of successful workpackages.
void ResultTables::note_missing(ResultTable& out) const {
  constexpr size_t kMost = 8;
  if (benchmark_.as_jube) return;
  for (const Column& column : out.columns) {
    const std::string& name = column.name.value;
    note_missing_job_value(column, out);
    const bool found_in_files =
        column.expression.value.empty() && is_pattern_value(benchmark_, name);
    if (column.null_value_set || !found_in_files) continue;
    std::vector<std::string> empty;
    for (size_t i = 0; i < out.rows.size(); ++i) {
      const Record& row = out.rows[i];
      if (row.state == State::done && !row.values.has(name)) empty.push_back(std::to_string(i + 1));
    }
    if (empty.empty()) continue;
    const size_t count = empty.size();
    if (count > kMost) {
      empty.resize(kMost);
      empty.emplace_back("...");
    }
    out.notes.push_back(
        {"", fmt::format("'{}' has no value in {} of {} rows: row{} {}", name, count,
                         out.rows.size(), count == 1 ? "" : "s", join(empty, ", "))});
  }
}

void ResultTables::add_notes(ResultTable& out) const {
  for (size_t i = 0; i < out.rows.size(); ++i) {
    const Record& row = out.rows[i];
    const bool marked = row.failed() && !benchmark_.as_jube;
    const std::string word = marked ? " " + mark(row) : "";
    for (const std::string& note : row.notes)
      out.notes.push_back({fmt::format("row {}{}", i + 1, word), note, marked});
  }
  for (const std::string& note : records_.notes) out.notes.push_back({"", note});
  for (const std::string& note : records_.of_run) out.notes.push_back({"", note, false, true});
  out.missing_rows = records_.missing_rows;
  out.changed = records_.changed;
}

ResultTable ResultTables::table(const Table& table, const ColumnChoice& choice,
                                std::vector<Record> rows) const {
  ResultTable out;
  out.columns = chosen(table.columns, choice);
  out.units = records_.units;
  const std::set<std::string> names = names_in(table);
  give_own_columns(rows);
  rows = with_marks(std::move(rows), names_shown(out.columns, table.references));
  out.rows = with_status(std::move(rows), names);
  add_statistics(benchmark_, table.columns, names, records_, out.rows, evaluator_, diagnostics_);
  add_derived_columns(benchmark_, table.columns, records_, out.rows, evaluator_, diagnostics_);
  check_units(table, out);
  filter(table.filter, &table, out);
  if (choice.with_id) {
    sort_each_run(table.sort, out.rows);
  } else {
    sort_rows(table.sort, out.rows);
  }
  drop_empty(out, choice.with_id);
  note_missing(out);
  add_notes(out);
  check_references(benchmark_, table, evaluator_, diagnostics_, out);
  note_precision(benchmark_, out);
  show_statistics(out);
  mark_states(out);
  mark_disturbed(out);
  return out;
}

ResultTable ResultTables::database(const Database& database) const {
  ResultTable out;
  out.columns = database.keys;
  const std::set<std::string> names = names_in(database);
  std::vector<Record> rows = records_.rows;
  give_own_columns(rows);
  out.rows = with_status(with_marks(std::move(rows), names_shown(out.columns, {})), names);
  add_statistics(benchmark_, database.keys, names, records_, out.rows, evaluator_, diagnostics_);
  filter(database.filter, nullptr, out);
  if (!shows_status(database.keys)) {
    leave_out_failed(out);
    leave_out_reused(out);
  }
  drop_empty(out, false);
  note_marks(out);
  return out;
}

ResultTable ResultTables::syslog(const Syslog& syslog) const {
  ResultTable out;
  out.columns = syslog.keys;
  const std::set<std::string> names = names_in(syslog);
  std::vector<Record> rows = records_.rows;
  give_own_columns(rows);
  out.rows = with_status(with_marks(std::move(rows), names_shown(out.columns, {})), names);
  add_statistics(benchmark_, syslog.keys, names, records_, out.rows, evaluator_, diagnostics_);
  filter(syslog.filter, nullptr, out);
  sort_rows(syslog.sort, out.rows);
  drop_empty(out, false);
  return out;
}

}  // namespace tally
