#include "engine/results/table/repeats.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <utility>

#include "engine/base/text.h"
#include "engine/python/python_format.h"
#include "engine/python/tokens.h"
#include "engine/results/read/patterns.h"
#include "engine/results/table/columns.h"
#include "engine/statistics/descriptive.h"
#include "engine/statistics/named.h"
#include "engine/workflow/builtin_names.h"
#include "engine/workflow/table_names.h"

namespace tally {
namespace {

// How the numbers of a sample were written.
struct Digits {
  bool whole = true;         // all are integers
  signed char decimals = 0;  // the most of Value::decimals; -1: unknown
};

// The numbers that the repeats of a row have under one name.
struct Numbers {
  statistics::Sample sample;  // the finite ones
  Digits digits;              // of those
  int of = 0;                 // how many repeats were planned
};

// How many workpackages were planned that a value of these comes from.
int planned(const Record& row, const std::set<int>& sources) {
  int count = 1;
  for (const int id : sources) {
    const auto found = row.repeats_above->find(id);
    if (found != row.repeats_above->end()) count = std::max(count, found->second);
  }
  return count;
}

// A value that several repeats have from one workpackage, on which they depend, counts once.
Numbers numbers_of(const Record& row, const std::string& name) {
  Numbers out;
  out.of = row.all_repeats;
  std::set<std::set<int>> seen;
  bool own = false;
  for (const Repeat& repeat : row.repeats) {
    const Value* value = repeat.values.find(name);
    if (value == nullptr || !value->number()) continue;
    const auto from = repeat.from->find(name);
    own = own || from == repeat.from->end();
    if (from != repeat.from->end()) {
      if (!seen.insert(from->second).second) continue;
      out.of = planned(row, from->second);
    }
    const double number = value->as_double();
    if (!std::isfinite(number)) continue;
    if (!std::holds_alternative<long long>(value->data)) {
      const bool known = out.digits.decimals >= 0 && value->decimals >= 0;
      out.digits = {false, known ? std::max(out.digits.decimals, value->decimals)
                                 : static_cast<signed char>(-1)};
    }
    out.sample.push_back(number);
  }
  if (own) out.of = row.all_repeats;
  return out;
}

// A number that was computed from decimals, without the digits that only the computing made: 0.15 is
// the mean of 0.1 and 0.2, and not 0.15000000000000002.
double without_rounding_error(double number) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.15g", number);
  const double decimal = std::strtod(text.data(), nullptr);
  const double step = std::fabs(std::nextafter(number, HUGE_VAL) - number);
  return std::fabs(decimal - number) <= 2 * step ? decimal : number;
}

// A value of the sample as it was printed, and any other without that error.
double as_printed(double number, const statistics::Sample& sample) {
  const bool printed = contains(sample, number);
  return printed || !std::isfinite(number) ? number : without_rounding_error(number);
}

// A number as a table shows it: None if there is none, and the median of integers an integer where
// it is one.
Value shown(double number, const statistics::Sample& sample, Digits digits) {
  if (!std::isfinite(number)) return {};
  constexpr double kExact = 9007199254740992;  // 2^53
  if (digits.whole && std::floor(number) == number && std::fabs(number) < kExact)
    return {static_cast<long long>(number)};
  return {as_printed(number, sample), digits.decimals};
}

void add_interval(const Column& column, int run, Summary& summary) {
  const statistics::Sample& sample = summary.sample;
  if (column.uncertainty == Uncertainty::range) {
    const auto [low, high] = std::minmax_element(sample.begin(), sample.end());
    summary.interval = {*low, *high};
  } else if (column.uncertainty == Uncertainty::mad) {
    const double mad = statistics::median_absolute_deviation(sample);
    summary.interval = {summary.value - mad, summary.value + mad};
  } else if (column.uncertainty == Uncertainty::ci) {
    const auto interval_of = column.statistic == nullptr ? nullptr : column.statistic->interval;
    const statistics::MedianInterval found = interval_of == nullptr
                                                 ? statistics::median_interval(sample)
                                                 : interval_of(sample, static_cast<uint64_t>(run));
    summary.too_few = found.is_range;
    summary.interval = found.interval;
  }
}

Summary summarise(const Column& column, const Record& row, Digits* digits) {
  Summary summary;
  Numbers numbers = numbers_of(row, column.name.value);
  summary.sample = std::move(numbers.sample);
  summary.repeats = numbers.of;
  *digits = numbers.digits;
  summary.decimals = numbers.digits.decimals;
  if (summary.sample.empty()) return summary;
  summary.value =
      column.statistic == nullptr ? summary.sample.front() : column.statistic->of(summary.sample);
  summary.outliers = statistics::outliers(summary.sample);
  add_interval(column, row.run, summary);
  summary.value = as_printed(summary.value, summary.sample);
  if (summary.interval) {
    summary.interval->low = as_printed(summary.interval->low, summary.sample);
    summary.interval->high = as_printed(summary.interval->high, summary.sample);
  }
  return summary;
}

// The statistic of a sample as a table shows it.
Value statistic_value(const statistics::NamedStatistic& statistic, const statistics::Sample& sample,
                      Digits digits) {
  using Kind = statistics::NamedStatistic::Kind;
  if (sample.empty() && !statistic.of_nothing) return {};
  const double number = statistic.of(sample);
  switch (statistic.kind) {
    case Kind::value:
      break;
    case Kind::average:
      digits.whole = false;
      break;
    case Kind::ratio:
      digits = {false, -1};
      break;
    case Kind::count:
      return {static_cast<long long>(number)};
  }
  return shown(number, sample, digits);
}

bool is_computed(const Column& column) {
  return !column.expression.value.empty() && column.relative_to.empty();
}

// An expression over values of workpackages above alone is their value, too.
void note_sources(const Benchmark& benchmark, const std::vector<const Column*>& columns,
                  Repeat& repeat) {
  for (const Column* one : columns) {
    const Column& column = *one;
    if (!is_computed(column) || repeat.from->empty()) continue;
    std::set<int> sources;
    bool own = false;
    for (const std::string& name : names_read(column.expression.value)) {
      const auto from = repeat.from->find(name);
      if (from != repeat.from->end()) {
        sources.insert(from->second.begin(), from->second.end());
      } else if (repeat.values.has(name)) {
        own = own || is_match_value(benchmark, name) || is_workpackage_name(name);
      }
    }
    if (!own && !sources.empty()) repeat.from.edit()[column.name.value] = std::move(sources);
  }
}

// Computes the table's expressions in every repeat, for the columns that show a statistic of one.
void compute_in_repeats(const ResultContext& context, const std::vector<Column>& columns,
                        const Records& records, std::vector<Record>& rows) {
  const bool any = std::ranges::any_of(
      columns, [](const Column& column) { return is_computed(column) && shows_repeats(column); });
  if (!any) return;
  const ColumnOrder order = columns_in_order(context.benchmark, columns, records, rows);
  std::vector<Record> repeats;
  std::vector<size_t> row_of;
  for (Record& row : rows) {
    for (Repeat& repeat : row.repeats) {
      note_sources(context.benchmark, order.columns, repeat);
      row_of.push_back(static_cast<size_t>(&row - rows.data()));
      repeats.emplace_back().values = std::move(repeat.values);
      repeats.back().state = row.state;
    }
  }
  give_own_columns(repeats);
  FormerValues former(order, repeats);
  for (const Column* column : order.columns) {
    if (!is_computed(*column)) continue;
    const InRepeats of{row_of, stands_again(columns, *column, false)};
    former.keep(*column);
    former.give(*column);
    add_in_repeats(context, *column, records, of, repeats);
    former.take_back(*column);
  }
  size_t at = 0;
  for (Record& row : rows) {
    for (Repeat& repeat : row.repeats) repeat.values = std::move(repeats[at++].values);
  }
}

std::string row_list(const std::vector<size_t>& rows) {
  constexpr size_t kMost = 8;
  std::vector<std::string> words;
  for (size_t i = 0; i < rows.size() && i < kMost; ++i)
    words.push_back(std::to_string(rows[i] + 1));
  if (rows.size() > kMost) words.emplace_back("...");
  return (rows.size() == 1 ? "row " : "rows ") + join(words, ", ");
}

// Columns whose intervals are none in the same rows have one note.
void note_intervals(ResultTable& out) {
  std::vector<std::pair<std::string, std::vector<std::string>>> notes;  // rows, titles
  for (const TableColumn& column : out.columns) {
    std::vector<size_t> too_few;
    for (size_t i = 0; column.statistic != nullptr && i < out.rows.size(); ++i) {
      const auto found = out.rows[i].summaries.find(column.info.name);
      if (found != out.rows[i].summaries.end() && found->second.too_few) too_few.push_back(i);
    }
    if (too_few.empty()) continue;
    const std::string rows = row_list(too_few);
    auto known = std::ranges::find(notes, rows, &decltype(notes)::value_type::first);
    if (known == notes.end()) known = notes.insert(known, {rows, {}});
    known->second.push_back("'" + column.info.title + "'");
  }
  for (const auto& [rows, titles] : notes)
    out.notes.push_back(
        {"", fmt::format("{}: fewer than {} repeats in {}: ci_low and ci_high are the smallest and "
                         "the largest value, not a 95 % interval",
                         join(titles, ", "), statistics::kFewestForMedian, rows)});
}

// A number of the summary as the column shows it.
std::string in_column(const Column& column, const Summary& summary, double number) {
  std::string text;
  const Value value{number, summary.decimals};
  const bool shown = !column.format.empty() && format_cell(value, column.format, false, &text);
  return shown ? text : value.printed();
}

void note_outliers(const TableColumn& column, ResultTable& out) {
  for (size_t i = 0; i < out.rows.size(); ++i) {
    const auto found = out.rows[i].summaries.find(column.info.name);
    if (found == out.rows[i].summaries.end()) continue;
    const Summary& summary = found->second;
    const std::vector<size_t>& indexes = summary.outliers.indexes;
    if (indexes.empty()) continue;
    const std::string row = fmt::format("row {}", i + 1);
    const double median = statistics::median(summary.sample);
    if (indexes.size() == 1 && summary.outliers.first()) {
      out.notes.push_back(
          {row, fmt::format("'{}': the first repeat ({}) is far from the median "
                            "({}): the machine may need a warm-up",
                            column.info.title, in_column(column, summary, summary.sample[0]),
                            in_column(column, summary, median))});
      continue;
    }
    std::vector<std::string> values;
    for (const size_t index : indexes)
      values.push_back(in_column(column, summary, summary.sample[index]));
    out.notes.push_back(
        {row, fmt::format("'{}' has {} outlier{} in {} repeats ({}; the median is {}); they count "
                          "in the row",
                          column.info.title, indexes.size(), indexes.size() == 1 ? "" : "s",
                          summary.sample.size(), join(values, ", "),
                          in_column(column, summary, median))});
  }
}

// Adds a column after `column` that shows `value` of its summary.
template <typename Get>
void add_beside(const TableColumn& column, const std::string& suffix, const Get& value,
                std::vector<TableColumn>& columns, std::vector<Record>& rows) {
  Column definition;
  definition.name = column.name;
  definition.name.value = column.info.name + " " + suffix;
  definition.title =
      column.title.empty() ? column.name.value + "_" + suffix : column.title + " " + suffix;
  definition.format = column.format;
  TableColumn beside(std::move(definition));
  beside.info.kind = column.info.kind;
  for (Record& row : rows) {
    const auto found = row.summaries.find(column.info.name);
    if (found == row.summaries.end() || !found->second.interval) continue;
    const Summary& summary = found->second;
    row.values.set(beside.info.name,
                   shown(value(summary), summary.sample, {false, summary.decimals}));
  }
  columns.push_back(std::move(beside));
}

// "5 of 6". "1 of 1, 6 of 6": the columns come from steps with different repeats.
std::string repeats_text(const Record& row, const std::vector<TableColumn>& columns) {
  std::vector<std::pair<int, size_t>> counts;  // planned, counted
  for (const TableColumn& column : columns) {
    if (column.statistic == nullptr) continue;
    const auto found = row.summaries.find(column.info.name);
    const bool summarised = found != row.summaries.end();
    if (!summarised && column.relative_to.empty()) continue;
    // A ratio has no summary of its own: it is one of statistics.
    const Numbers numbers = summarised ? Numbers() : numbers_of(row, column.name.value);
    const int planned = summarised ? found->second.repeats : numbers.of;
    const size_t counted = summarised ? found->second.sample.size() : numbers.sample.size();
    const auto known = std::ranges::find(counts, planned, &std::pair<int, size_t>::first);
    if (known == counts.end()) {
      counts.emplace_back(planned, counted);
    } else {
      known->second = std::min(known->second, counted);
    }
  }
  std::vector<std::string> texts;
  for (const auto& [all, counted] : counts) texts.push_back(fmt::format("{} of {}", counted, all));
  return join(texts, ", ");
}

// Whether some row has an interval of the column that is one of 95 %.
bool has_interval(const TableColumn& column, const std::vector<Record>& rows) {
  return std::ranges::any_of(rows, [&](const Record& row) {
    const auto found = row.summaries.find(column.info.name);
    return found != row.summaries.end() && found->second.interval && !found->second.too_few;
  });
}

std::string uncertainty_words(const TableColumn& column, const std::vector<Record>& rows) {
  if (column.uncertainty == Uncertainty::none) return "";
  if (column.uncertainty == Uncertainty::mad) return ", and the median absolute deviation";
  const bool interval = column.uncertainty == Uncertainty::ci && has_interval(column, rows);
  return interval ? " and its 95 % interval" : ", and the smallest and largest";
}

void add_repeats_column(ResultTable& out) {
  TableColumn column = own_column("repeats", "repeats");
  for (Record& row : out.rows)
    row.values.set(column.info.name, Value{repeats_text(row, out.columns)}, Asked::asked);
  out.columns.push_back(std::move(column));
}

}  // namespace

bool owns_name(const std::vector<Column>& columns, const Column& column) {
  for (const Column& other : columns) {
    if (other.name.value != column.name.value || !other.relative_to.empty()) continue;
    if (other.statistic == nullptr) return false;
  }
  return true;
}

void add_statistics(const ResultContext& context, const std::vector<Column>& columns,
                    const std::set<std::string>& names, const Records& records,
                    std::vector<Record>& rows) {
  compute_in_repeats(context, columns, records, rows);
  const std::vector<SampleNameUse> used = sample_names(context.benchmark, names);
  for (Record& row : rows) {
    Digits digits;
    for (const SampleNameUse& use : used) {
      const Numbers numbers = numbers_of(row, use.parts.base);
      row.values.set(use.name,
                     statistic_value(*use.parts.statistic, numbers.sample, numbers.digits),
                     Asked::asked);
    }
    // In reverse, so that the first column of a name decides the value under that name.
    for (auto column = columns.rbegin(); column != columns.rend(); ++column) {
      if (!shows_repeats(*column)) continue;
      Summary summary = summarise(*column, row, &digits);
      if (column->statistic != nullptr) {
        const Value value = statistic_value(*column->statistic, summary.sample, digits);
        row.values.set(statistic_key(*column), value, Asked::asked);
        const bool in_order = is_computed(*column);  // by add_derived_columns()
        if (!in_order && owns_name(columns, *column))
          row.values.set(column->name.value, value, Asked::asked);
      }
      if (column->relative_to.empty())
        row.summaries.insert_or_assign(column_key(*column), std::move(summary));
    }
  }
}

void show_statistics(ResultTable& out) {
  const bool any = std::ranges::any_of(
      out.columns, [](const Column& column) { return column.statistic != nullptr; });
  if (!any) return;
  note_intervals(out);
  std::vector<TableColumn> columns;
  for (const TableColumn& column : out.columns) {
    columns.push_back(column);
    if (column.statistic == nullptr) continue;
    note_outliers(column, out);
    const auto low = [](const Summary& summary) { return summary.interval->low; };
    const auto high = [](const Summary& summary) { return summary.interval->high; };
    const auto mad = [](const Summary& summary) {
      return statistics::median_absolute_deviation(summary.sample);
    };
    if (column.uncertainty == Uncertainty::mad) add_beside(column, "mad", mad, columns, out.rows);
    const bool range = column.uncertainty == Uncertainty::range;
    if (!range && column.uncertainty != Uncertainty::ci) continue;
    add_beside(column, range ? "min" : "ci_low", low, columns, out.rows);
    add_beside(column, range ? "max" : "ci_high", high, columns, out.rows);
  }
  out.columns = std::move(columns);
  add_repeats_column(out);
}

std::vector<std::string> repeats_legend(const ResultTable& table) {
  std::vector<std::pair<std::string, std::string>> lines;  // what is shown, the columns
  for (const TableColumn& column : table.columns) {
    if (column.statistic == nullptr || !column.relative_to.empty()) continue;
    const std::string words = std::string(column.statistic->legend) + " of the repeats" +
                              uncertainty_words(column, table.rows);
    const auto known = std::ranges::find(lines, words, &std::pair<std::string, std::string>::first);
    if (known == lines.end()) {
      lines.emplace_back(words, column.info.title);
    } else {
      known->second += ", " + column.info.title;
    }
  }
  std::vector<std::string> texts;
  for (const auto& [words, columns] : lines) texts.push_back(columns + ": " + words);
  return texts;
}

double relative_half_width(const statistics::Sample& sample) {
  if (sample.size() < statistics::kFewestForMedian) return -1;
  const double middle = std::fabs(statistics::median(sample));
  const statistics::Interval interval = statistics::median_interval(sample).interval;
  return middle == 0 ? -1 : (interval.high - interval.low) / 2 / middle;
}

void note_precision(const Benchmark& benchmark, ResultTable& out) {
  for (const Step& step : benchmark.steps) {
    if (step.until.metric.value.empty()) continue;
    for (const TableColumn& column : out.columns) {
      if (column.name.value != step.until.metric.value) continue;
      for (size_t i = 0; i < out.rows.size(); ++i) {
        const auto found = out.rows[i].summaries.find(column.info.name);
        if (found == out.rows[i].summaries.end()) continue;
        const statistics::Sample& sample = found->second.sample;
        const double half_width = relative_half_width(sample);
        if (half_width <= step.until.half_width) continue;
        out.notes.push_back(
            {fmt::format("row {}", i + 1),
             fmt::format("'{}': after {} repeats the interval of the median is +-{:.2g} %; `until` "
                         "asks for {:.2g} %",
                         column.info.title, sample.size(), 100 * half_width,
                         100 * step.until.half_width)});
      }
    }
  }
}

}  // namespace tally
