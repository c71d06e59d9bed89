#include "engine/results/table/result_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "engine/base/text.h"
#include "engine/results/read/patterns.h"
#include "engine/results/table/columns.h"
#include "engine/results/table/marks.h"
#include "engine/results/table/references.h"
#include "engine/results/table/repeats.h"
#include "engine/results/table/row_choice.h"
#include "engine/workflow/column_order.h"
#include "engine/workflow/pattern_uses.h"
#include "engine/workflow/table_names.h"

namespace tally {
namespace {

std::vector<TableColumn> chosen(const std::vector<Column>& all, const ColumnChoice& options) {
  std::vector<TableColumn> columns;
  if (options.with_id) {
    Column id;
    id.name.value = "id";
    columns.emplace_back(id);
  }
  for (const Column& column : all) {
    const std::string& name = column.name.value;
    bool selected = options.select.empty() || contains(options.select, name) ||
                    contains(options.select, column.title);
    bool excluded = contains(options.exclude, name) ||
                    (!column.title.empty() && contains(options.exclude, column.title));
    if (selected && !excluded) columns.emplace_back(column);
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

// Whether `name` comes from the files: a pattern, or a statistic of its matches or repeats.
bool is_pattern_value(const Benchmark& benchmark, const std::string& name) {
  const std::optional<SampleName> sample = sample_name(benchmark, name);
  if (job_value(benchmark, sample ? sample->base : name) != nullptr) return false;
  return is_match_value(benchmark, name) || sample;
}

// Which rows may have values in an output's columns: those of the steps in whose outputs, or in those
// of a step before, its patterns are sought. Rows of another analyser or step are none of its own,
// however their work has ended.
class OwnRows {
 public:
  OwnRows(const Benchmark& benchmark, const std::vector<TableColumn>& columns)
      : benchmark_(benchmark) {
    std::set<std::string> names;
    for (const TableColumn& column : columns) {
      names.insert(column.info.sources.begin(), column.info.sources.end());
      for (std::string& name : names_in_expression(column)) names.insert(std::move(name));
    }
    for (const std::string& name : names) {
      const std::string pattern = pattern_of(benchmark, name);
      any_ = any_ || job_value(benchmark, pattern) != nullptr;
      shown_.insert(pattern);
    }
    names_.reserve(columns.size());
    for (const TableColumn& column : columns) names_.push_back(column.info.name);
  }

  bool has(const Record& row) const {
    return any_ || has_value(row) || asked(row, [&](const std::string& step) {
             return step == *row.step || depends_on(benchmark_, *row.step, step);
           });
  }
  // The same of rows that are missing because of this workpackage of a step before.
  bool has_missing(const Record& before) const {
    return any_ || has_value(before) || asked(before, [&](const std::string& step) {
             return depends_on(benchmark_, step, *before.step);
           });
  }

 private:
  bool has_value(const Record& row) const {
    return std::ranges::any_of(names_,
                               [&](const std::string& name) { return row.values.has(name); });
  }
  template <typename IsOf>
  bool asked(const Record& row, const IsOf& is_of) const {
    for (const Analyser& analyser : benchmark_.analysers) {
      if (analyser.name.value != *row.analyser) continue;
      for (const Analyse& analyse : analyser.analyse) {
        if (is_of(analyse.step.value) && seeks_shown(analyser, analyse)) return true;
      }
    }
    return false;
  }
  bool seeks_shown(const Analyser& analyser, const Analyse& analyse) const {
    std::vector<Text> use = analyser.use;
    for (const AnalyseFile& file : analyse.files)
      use.insert(use.end(), file.use.begin(), file.use.end());
    if (std::ranges::any_of(use, [](const Text& name) { return has_dollar(name.value); }))
      return true;  // a parameter chooses the set
    return std::ranges::any_of(patterns_of(benchmark_, use), [&](const Pattern* pattern) {
      return shown_.count(pattern->name.value) != 0;
    });
  }

  const Benchmark& benchmark_;
  std::set<std::string> shown_;     // patterns
  std::vector<std::string> names_;  // of values
  bool any_ = false;                // a value of jobs, which rows of every step may have
};

}  // namespace

std::string position_text(const Sources& sources, const MissedReference& missed) {
  return missed.place.empty() ? position_text(sources, missed.mark) : missed.place;
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
    row.values.set(kStatusColumn, Value{std::string(state_word(row))}, Asked::asked);
  return rows;
}

// Ratios have no unit, and neither has a statistic that is none of the values' kind.
void ResultTables::set_units(ResultTable& out) const {
  for (TableColumn& column : out.columns) {
    const auto known = records_.known.find(column.name.value);
    const bool ratio = !column.relative_to.empty() ||
                       (column.statistic != nullptr && !column.statistic->has_unit());
    if (known != records_.known.end() && !ratio) column.info.unit = known->second.unit;
  }
}

// Values in different units do not make one column. The table is shown without the unit, because
// the run may have taken hours, and without ratios.
void ResultTables::check_units(const Table& table, ResultTable& out) const {
  if (!benchmark_.rules.units_must_agree) return;
  std::set<std::string> told;
  for (TableColumn& column : out.columns) {
    const std::string& name = column.name.value;
    const auto known = records_.known.find(name);
    if (known == records_.known.end() || known->second.other_unit.empty() ||
        !column.expression.value.empty())
      continue;
    if (told.insert(name).second)
      diagnostics_.error(
          column.name.mark,
          fmt::format("table '{}': the values of '{}' are in {} and in {}", table.name.value, name,
                      known->second.unit, known->second.other_unit),
          "give the patterns different names, or the same unit");
    if (column.relative_to.empty()) continue;
    for (Record& row : out.rows) row.values.erase(column.info.name);
  }
  for (TableColumn& column : out.columns)
    if (told.count(column.name.value) != 0) column.info.unit.clear();
}

// A failed row, and one that lacks a value that a reference asks for, must not disappear because
// the filter has nothing to compare.
std::vector<bool> ResultTables::filter(const Text& filter, const Table* table,
                                       ResultTable& out) const {
  std::vector<bool> stays(out.rows.size(), strip(filter.value).empty());
  if (strip(filter.value).empty()) return stays;
  Matching matching =
      benchmark_.rules.filters_keep_failed_rows
          ? matching_rows_or_failed({filter, WithoutValue::text_in_quotes}, out.rows, evaluator_,
                                    diagnostics_)
          : matching_rows({filter, WithoutValue::text}, out.rows, evaluator_, diagnostics_);
  size_t dropped = matching.lacking.size();
  if (table != nullptr && !table->references.empty() && dropped != 0) {
    const std::set<size_t> missing = rows_that_miss(*table, out.rows, evaluator_, diagnostics_);
    for (const size_t i : matching.lacking) {
      if (missing.count(i) == 0) continue;
      matching.rows.push_back(i);
      --dropped;
    }
    std::ranges::sort(matching.rows);
  }
  if (dropped != 0) {
    out.notes.push_back({"", fmt::format("{} of {} rows {} left out because {} no value for the "
                                         "filter \"{}\"",
                                         dropped, out.rows.size(), dropped == 1 ? "is" : "are",
                                         dropped == 1 ? "it has" : "they have", filter.value)});
  }
  std::vector<Record> kept;
  kept.reserve(matching.rows.size());
  for (const size_t i : matching.rows) {
    stays[i] = true;
    kept.push_back(std::move(out.rows[i]));
  }
  out.rows = std::move(kept);
  return stays;
}

// A missing row that the filter would leave out is not missed.
void ResultTables::filter_missing(const Text& filter, ResultTable& out) const {
  if (out.missing.empty() || strip(filter.value).empty()) return;
  const std::vector<bool> shown =
      may_choose({filter, WithoutValue::text_in_quotes}, out.rows, out.missing, evaluator_);
  std::vector<Record> kept;
  for (size_t i = 0; i < shown.size(); ++i)
    if (shown[i]) kept.push_back(std::move(out.missing[i]));
  out.missing = std::move(kept);
}

// Drops rows in which no column has a value. Such a row stays if it may have one and its mark says
// why it has none (FAILED, EXPECTED, PENDING), or if it is to be reported that a column's pattern matched nothing in
// its output.
void ResultTables::drop_empty(ResultTable& out, bool with_id) const {
  const auto searched = [this](const Record& row, const Column& column) {
    return std::ranges::any_of(row.unmatched, [&](const std::string& pattern) {
      const std::optional<SampleName> sample = sample_name(benchmark_, column.name.value);
      return is_match_value_of(sample ? sample->base : column.name.value, pattern);
    });
  };
  std::vector<std::pair<const TableColumn*, ValuesOf>> values;
  for (const TableColumn& column : out.columns) {
    if (with_id && column.name.value == "id") continue;  // the run's
    values.emplace_back(&column, column.info.name);
  }
  const OwnRows own(benchmark_, out.columns);
  const auto empty = [&](const Record& row) {
    if (!row.measured() && benchmark_.rules.rows_are_marked && own.has(row)) return false;
    return std::ranges::all_of(values, [&](const auto& one) {
      if (benchmark_.rules.missing_values_are_reported && searched(row, *one.first)) return false;
      return one.second.in(row) == nullptr;
    });
  };
  std::erase_if(out.rows, empty);
}

// A value that the scheduler does not have is reported with the reason.
void ResultTables::note_missing_job_value(const TableColumn& column, ResultTable& out) const {
  const std::optional<SampleName> sample = sample_name(benchmark_, column.name.value);
  const JobValue* value = job_value(benchmark_, sample ? sample->base : column.name.value);
  if (value == nullptr || column.null_value_set || !column.expression.value.empty()) return;
  std::map<std::string, size_t> reasons;
  for (const Record& row : out.rows) {
    if (!row.values.has(column.info.name))
      ++reasons[row.no_job_use.empty() ? value->missing : row.no_job_use.str()];
  }
  for (const auto& [reason, count] : reasons)
    out.notes.push_back({"", fmt::format("'{}' is not available in {} of {} rows: {}",
                                         column.name.value, count, out.rows.size(), reason)});
}

namespace {

// Whether a note of the row says why the column is empty: it has no baseline row.
bool says_empty(const Record& row, const TableColumn& column) {
  return std::ranges::any_of(
      row.notes, [&](const std::string& note) { return starts_with(note, empty_cell(column)); });
}

}  // namespace

// Reports empty cells of successful workpackages.
void ResultTables::note_missing(ResultTable& out) const {
  constexpr size_t kMost = 8;
  if (!benchmark_.rules.missing_values_are_reported) return;
  for (const TableColumn& column : out.columns) {
    const std::string& name = column.name.value;
    note_missing_job_value(column, out);
    const bool computed = !column.expression.value.empty();
    if (column.null_value_set || (!computed && !is_pattern_value(benchmark_, name))) continue;
    const std::string& key = computed ? column.info.name : name;
    std::vector<std::string> empty;
    const ValuesOf values(key);
    for (size_t i = 0; i < out.rows.size(); ++i) {
      const Record& row = out.rows[i];
      if (row.state != State::done || values.in(row) != nullptr) continue;
      if (!computed || !says_empty(row, column)) empty.push_back(std::to_string(i + 1));
    }
    if (empty.empty()) continue;
    const size_t count = empty.size();
    if (count > kMost) {
      empty.resize(kMost);
      empty.emplace_back("...");
    }
    out.notes.push_back(
        {"", fmt::format("'{}' has no value in {} of {} rows: row{} {}",
                         computed ? column.info.title : name, count, out.rows.size(),
                         count == 1 ? "" : "s", join(empty, ", "))});
  }
}

void ResultTables::add_notes(ResultTable& out) const {
  std::vector<RowsNote> notes;
  for (size_t i = 0; i < out.rows.size(); ++i) {
    const Record& row = out.rows[i];
    const bool marked = row.failed() && benchmark_.rules.rows_are_marked;
    for (const std::string& note : row.notes)
      add_row(i, 0, {marked ? state_mark(row) : "", note, {}, {}}, &notes);
  }
  for (const RowsNote& note : notes)
    out.notes.push_back({note.rows_text(), note.text(), !note.words.mark.empty()});
  for (const std::string& note : records_.notes) out.notes.push_back({"", note});
  for (const std::string& note : records_.of_run) out.notes.push_back({"", note, false, true});
  out.missing_rows = records_.missing_rows;
  const OwnRows own(benchmark_, out.columns);
  for (const Record& row : records_.missing) {
    if (own.has_missing(row)) out.missing.push_back(row);
  }
  out.changed = records_.changed;
}

std::vector<Record> ResultTables::rows_of(const ResultContext& context,
                                          const std::vector<Column>& columns,
                                          const std::set<std::string>& names,
                                          const std::set<std::string>& shown,
                                          std::vector<Record> rows) const {
  give_own_columns(rows);
  rows = with_status(with_marks(std::move(rows), shown), names);
  add_statistics(context, columns, names, records_, rows);
  return rows;
}

ResultTable ResultTables::table(const Table& table, const ColumnChoice& choice,
                                std::vector<Record> rows) const {
  ResultTable out;
  out.columns = chosen(table.columns, choice);
  for (TableColumn& column : out.columns)
    column.info.sources = names_through(table.columns, std::move(column.info.sources));
  set_units(out);
  const std::vector<Column> shown(out.columns.begin(), out.columns.end());
  std::vector<TextsFound> texts;
  ResultContext context = context_;
  context.texts = &texts;
  out.rows = rows_of(context, table.columns, names_in(table), names_shown(shown, table.references),
                     std::move(rows));
  add_derived_columns(context, table.columns, records_, out.rows);
  check_units(table, out);
  const std::vector<bool> kept = filter(table.filter, &table, out);
  for (const TextsFound& found : texts) refuse_texts(found, kept, diagnostics_);
  if (choice.with_id) {
    sort_each_run(table.sort, out.rows);
  } else {
    sort_rows(table.sort, out.rows);
  }
  drop_empty(out, choice.with_id);
  note_missing(out);
  add_notes(out);
  filter_missing(table.filter, out);
  check_references(benchmark_, table, evaluator_, diagnostics_, out);
  note_precision(benchmark_, out);
  show_statistics(out);
  mark_states(benchmark_, out);
  mark_disturbed(benchmark_, out);
  find_types(out.rows, out.columns);
  return out;
}

ResultTable ResultTables::database(const Database& database) const {
  ResultTable out;
  out.columns = table_columns(database.keys);
  out.rows = rows_of(context_, database.keys, names_in(database), names_shown(database.keys, {}),
                     records_.rows);
  filter(database.filter, nullptr, out);
  leave_out_unfinished(benchmark_, out);
  if (!shows_status(benchmark_, out.columns)) {
    leave_out_failed(benchmark_, out);
    leave_out_reused(benchmark_, out);
  }
  drop_empty(out, false);
  note_marks(benchmark_, out);
  find_types(out.rows, out.columns);
  return out;
}

ResultTable ResultTables::syslog(const Syslog& syslog) const {
  ResultTable out;
  out.columns = table_columns(syslog.keys);
  out.rows =
      rows_of(context_, syslog.keys, names_in(syslog), names_shown(syslog.keys, {}), records_.rows);
  filter(syslog.filter, nullptr, out);
  sort_rows(syslog.sort, out.rows);
  drop_empty(out, false);
  return out;
}

}  // namespace tally
