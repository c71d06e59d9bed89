#include "engine/results/table/columns.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "engine/base/text.h"
#include "engine/expand/substitute.h"
#include "engine/python/guarded_literal.h"
#include "engine/python/tokens.h"
#include "engine/python/value.h"
#include "engine/results/read/patterns.h"
#include "engine/results/rows/point_key.h"
#include "engine/results/table/expressions.h"
#include "engine/results/table/marks.h"
#include "engine/results/table/repeats.h"
#include "engine/workflow/column_order.h"
#include "engine/workflow/table_names.h"

namespace tally {
namespace {

std::string describe(const std::vector<std::pair<Text, Text>>& conditions) {
  std::string text;
  for (const auto& [name, value] : conditions) {
    text += (text.empty() ? "" : ", ") + name.value + "=" + value.value;
  }
  return text;
}

bool same(const Cells& values, const std::string& name, const std::string& wanted) {
  const Value* found = values.find(name);
  if (found == nullptr) return false;
  if (found->str() == wanted) return true;
  if (!found->number()) return false;  // 12.1 and 12.10 are two texts
  std::optional<double> number = python_float(wanted);
  std::optional<double> own = python_float(found->str());
  return number && own && *number == *own;
}

// The run, analyser and step of a row. Rows of another one were measured in another way.
std::string source_key(const Record& row) {
  return fmt::format("{}\1{}\1{}", row.run, *row.analyser, *row.step);
}

// The parameters that tell rows apart: the free ones, and derived ones that have several values for
// the same free ones, as "$base,100" has.
std::set<std::string> distinguishing_parameters(const Benchmark& benchmark,
                                                const std::vector<Record>& rows) {
  std::set<std::string> names = free_parameters(benchmark);
  const std::set<std::string> varying = varying_parameters(benchmark);
  for (const Parameter& parameter : all_parameters(benchmark)) {
    const std::string& name = parameter.name.value;
    if (names.count(name) != 0 || varying.count(name) != 0) continue;
    std::map<std::string, std::string> first;
    const bool spans = std::ranges::any_of(rows, [&](const Record& row) {
      const std::string own = row.point.text({name});
      return first.try_emplace(source_key(row) + '\1' + row.point.text(names), own).first->second !=
             own;
    });
    if (spans) names.insert(name);
  }
  return names;
}

// Finds the baseline row of each row of a column. It has the column's `relative_to` values, and
// otherwise the row's parameters, run, analyser, step and iteration. Only where no row of the run,
// analyser and step has the `relative_to` values, it may come from another one.
class Baselines {
 public:
  Baselines(const Benchmark& benchmark, const Column& column, std::vector<Record>& rows,
            const std::function<bool(size_t)>& usable)
      : column_(column), rows_(rows), names_(distinguishing_parameters(benchmark, rows)) {
    for (const auto& [name, value] : column.relative_to) names_.erase(name.value);
    for (size_t i = 0; i < rows.size(); ++i) {
      const bool here = std::ranges::all_of(column.relative_to, [&](const auto& c) {
        return same(rows[i].values, c.first.value, c.second.value);
      });
      if (!here) continue;
      origins_.insert(source_key(rows[i]));
      const std::string key = key_of(rows[i]);
      if (!rows[i].measured()) broken_[key] = state_mark(rows[i]);
      if (!rows[i].measured()) continue;
      if (!usable(i)) {
        without_.insert(key);
        continue;
      }
      of_key_[key].push_back(i);
      for (const std::string& name : names_) of_baselines_[name].insert(rows[i].point.text({name}));
    }
  }

  // The index of the row's baseline row. -1: there is none, and the row gets a note, if it has a
  // value to compare.
  long find(Record& row, bool has_value) const {
    const std::string key = key_of(row);
    std::vector<size_t> found;
    const auto all = of_key_.find(key);
    const bool own = origins_.count(source_key(row)) != 0;
    for (size_t i = 0; all != of_key_.end() && i < all->second.size(); ++i) {
      const Record& other = rows_[all->second[i]];
      if (!own || source_key(other) == source_key(row)) found.push_back(all->second[i]);
    }
    if (found.size() == 1) return static_cast<long>(found.front());
    if (row.measured() && has_value) note(found, key, row);  // else its own mark says it
    return -1;
  }

 private:
  std::string key_of(const Record& row) const {
    return fmt::format("{}\1{}", row.iteration, row.point.key(names_));
  }

  void note(const std::vector<size_t>& found, const std::string& key, Record& row) const {
    const std::string values = describe(column_.relative_to);
    const auto how = broken_.find(key);
    std::string why = fmt::format("there is no baseline row with {}", values);
    if (found.size() > 1) {
      why = fmt::format(
          "{} baseline rows have {} (workpackages {} and {}); name what tells them apart in "
          "relative_to",
          found.size(), values, rows_[found[0]].id, rows_[found[1]].id);
    } else if (how != broken_.end()) {
      why = fmt::format("its baseline row, with {}, {}", values, how->second);
    } else if (without_.count(key) != 0) {
      why = fmt::format("its baseline row, with {}, has no value", values);
    } else if (const std::string others = different_in_all(row); !others.empty()) {
      std::string changed;
      for (const auto& [name, value] : column_.relative_to)
        changed += (changed.empty() ? "" : ", ") + name.value;
      const bool one = others.find(',') == std::string::npos;
      why = fmt::format(
          "no row with {} has the same {}; if {} together with {}, name {} in relative_to, too",
          values, others, one ? "it changes" : "they change", changed, one ? "it" : "them");
    }
    row.notes.push_back(empty_cell(column_) + why);
  }

  // The parameters of which no baseline row has the row's value. Zipped ones are such.
  std::string different_in_all(const Record& row) const {
    std::string names;
    for (const auto& [name, values] : of_baselines_) {
      if (values.count(row.point.text({name})) == 0) names += (names.empty() ? "" : ", ") + name;
    }
    return names;
  }

  const Column& column_;
  const std::vector<Record>& rows_;
  std::set<std::string> names_;
  std::set<std::string> origins_;              // that have rows with the `relative_to` values
  std::map<std::string, std::string> broken_;  // how those ended that are no measurement
  std::set<std::string> without_;              // of those that have no value to compare with
  std::map<std::string, std::vector<size_t>> of_key_;
  std::map<std::string, std::set<std::string>> of_baselines_;  // values of each of names_
};

// `usable`: whether the row at an index has a value to be compared with. `compared`: whether it has
// one to compare.
std::vector<long> baseline_rows(const Benchmark& benchmark, const Column& column,
                                std::vector<Record>& rows,
                                const std::function<bool(size_t)>& usable,
                                const std::function<bool(size_t)>& compared) {
  const Baselines baselines(benchmark, column, rows, usable);
  std::vector<long> out;
  for (size_t i = 0; i < rows.size(); ++i) out.push_back(baselines.find(rows[i], compared(i)));
  return out;
}

// A ratio to what was measured for too short a time, or on a disturbed machine, is as inexact as
// that. `names`: of the baseline row's values.
void take_marks(const Column& column, const Record& base, const std::set<std::string>& names,
                Record& row) {
  std::map<std::string, double> found = short_values_of(base, names);
  if (!found.empty()) row.short_baselines.edit()[column_key(column)] = std::move(found);
  if (&base != &row && base.disturbance.any())
    row.disturbed_baselines.edit()[column_key(column)] = base.disturbance;
}

// Divides the column's values by those of their baseline rows. `names`: of the values that these
// come from.
void relate(const Benchmark& benchmark, const Column& column, const std::set<std::string>& names,
            std::vector<Record>& rows, const std::vector<Value>& plain) {
  const auto has_value = [&](size_t i) { return plain[i].number() && !plain[i].nan(); };
  const std::vector<long> baseline = baseline_rows(benchmark, column, rows, has_value, has_value);
  for (size_t i = 0; i < rows.size(); ++i) {
    const bool related = baseline[i] >= 0 && plain[i].number();
    const Value base = related ? plain[static_cast<size_t>(baseline[i])] : Value{};
    Value ratio;
    if (related && base.as_double() != 0) ratio = Value{plain[i].as_double() / base.as_double()};
    if (ratio.nan() && !plain[i].nan()) ratio = {};  // inf / inf
    if (related && ratio.none() && rows[i].measured()) {
      const bool zero = base.as_double() == 0;
      rows[i].notes.push_back(
          empty_cell(column) +
          fmt::format("its baseline row, with {}, has the value {}, by which {}",
                      describe(column.relative_to), zero ? "0" : base.printed(),
                      zero ? "nothing can be divided" : "inf cannot be divided"));
    }
    if (!ratio.none()) take_marks(column, rows[static_cast<size_t>(baseline[i])], names, rows[i]);
    rows[i].values.set(column_key(column), std::move(ratio), Asked::asked);
  }
}

// The name for baseline.NAME among a row's values while the expression is evaluated.
std::string baseline_name(const std::string& name) {
  return "baseline__" + name;
}

// Replaces each `baseline.NAME` (or `$baseline.NAME`) outside strings by baseline_name(NAME) and
// collects the names.
std::string with_baseline_names(const std::string& expression, std::set<std::string>& names) {
  const std::vector<PythonToken> tokens = tokens_of(expression);
  std::string out;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const bool word = tokens[i].kind == TokenKind::word && tokens[i].text == "baseline";
    if ((word || tokens[i].text == "$baseline") && i + 2 < tokens.size() &&
        tokens[i + 1].text == "." && tokens[i + 2].kind == TokenKind::attribute) {
      const std::string name(tokens[i + 2].text);
      names.insert(name);
      out += baseline_name(name);
      i += 2;
    } else {
      out += tokens[i].text;
    }
  }
  return out;
}

// The values that an expression uses of the baseline row itself.
struct Compared {
  std::set<std::string> names;  // of the values; none: its results are divided
  std::vector<long> baseline;   // of each row; -1: there is none
};

// Adds the values that the expression uses from its baseline row to the row's own values. The caller
// removes them again.
void add_baseline_values(const Benchmark& benchmark, const Column& column,
                         std::vector<Record>& rows, Compared& compared) {
  const std::set<std::string>& names = compared.names;
  if (names.empty()) return;
  const auto usable = [&](size_t i) {
    return std::ranges::all_of(names, [&](const std::string& name) {
      const Value* value = rows[i].values.find(name);
      return value != nullptr && !value->nan();
    });
  };
  compared.baseline = baseline_rows(benchmark, column, rows, usable, [](size_t) { return true; });
  for (size_t i = 0; i < rows.size(); ++i) {
    if (compared.baseline[i] < 0) continue;
    const Cells& base = rows[static_cast<size_t>(compared.baseline[i])].values;
    for (const std::string& name : names)
      rows[i].values.set(baseline_name(name), Value(base.at(name)));
  }
}

// Reports the names used from the baseline row that no row has.
void check_baseline_names(const Benchmark& benchmark, const Column& column,
                          const std::set<std::string>& names, const std::set<std::string>& known,
                          Diagnostics& diagnostics) {
  for (const std::string& name : names) {
    if (known.count(name) != 0) continue;
    std::set<std::string> all = known;
    for (const std::string& parameter : parameter_order(benchmark)) all.insert(parameter);
    diagnostics.warning(column.expression.mark,
                        fmt::format("column '{}': baseline.{}: no row has a value of that name",
                                    column.name.value, name),
                        did_you_mean(name, {all.begin(), all.end()}));
  }
}

// The number that a value without a type is where one is needed: the expression is max(n, 5).
void take_number(Value& value) {
  const auto* text = std::get_if<std::string>(&value.data);
  if (std::optional<Value> number = text == nullptr ? std::nullopt : number_in(*text))
    value = *std::move(number);
}

// Whether the column's values are divided by those of the baseline row: its expression has none of
// these itself.
bool is_divided(const Column& column) {
  std::set<std::string> names;
  with_baseline_names(column.expression.value, names);
  return !column.relative_to.empty() && names.empty();
}

// Whether the column computes with its values, so that texts are an error.
bool needs_numbers(const Column& column) {
  return column.statistic != nullptr || column.better != Better::unknown || is_divided(column);
}

// The rows in which a column is computed, or their repeats.
struct Computed {
  std::vector<Record>& rows;
  const char* called = "rows";                  // in messages
  const std::vector<size_t>* row_of = nullptr;  // of each repeat
  // The values are there: another column has computed them.
  bool again = false;
};

// Finds texts in a column that needs numbers.
void find_texts(const ResultContext& context, const Column& column, const Computed& in,
                const std::vector<Value>& values) {
  const auto is_text = [&](size_t i) {
    return std::holds_alternative<std::string>(values[i].data) && in.rows[i].measured();
  };
  TextsFound found{&column, in.called, std::vector<TextsFound::Cell>(values.size())};
  bool any = false;
  for (size_t i = 0; i < values.size(); ++i) {
    TextsFound::Cell& cell = found.cells[i];
    cell.row = in.row_of == nullptr ? i : (*in.row_of)[i];
    cell.is_number = values[i].number();
    cell.is_text = is_text(i);
    if (!cell.is_text) continue;
    any = true;
    cell.text = std::get<std::string>(values[i].data);
    cell.is_baseline =
        is_divided(column) && std::ranges::all_of(column.relative_to, [&](const auto& one) {
          return same(in.rows[i].values, one.first.value, one.second.value);
        });
  }
  if (!any) return;
  if (context.texts != nullptr) {
    context.texts->push_back(std::move(found));
  } else {
    refuse_texts(found, std::vector<bool>(found.cells.back().row + 1, true), context.diagnostics);
  }
}

// Takes numbers for values that read as one, where the column needs numbers, and finds texts.
void take_numbers(const ResultContext& context, const Column& column, const Computed& in,
                  std::vector<Value>& values) {
  if (!needs_numbers(column)) return;
  for (Value& value : values) take_number(value);
  find_texts(context, column, in, values);
}

std::vector<Value> column_values(const std::vector<Record>& rows, const std::string& name) {
  std::vector<Value> values(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    values[i] = rows[i].values.at(name);
  }
  return values;
}

// The values of a column that is an expression.
std::vector<Value> expression_values(const ResultContext& context, const Column& column,
                                     const Records& records, const Computed& in,
                                     Compared* compared) {
  std::vector<Record>& rows = in.rows;
  Diagnostics& diagnostics = context.diagnostics;
  if (in.again) {
    std::vector<Value> values = column_values(rows, column.name.value);
    take_numbers(context, column, in, values);
    return values;
  }
  std::set<std::string> known = known_names(rows, &records);
  known.erase(column.name.value);
  std::string expression = column.expression.value;
  for (const std::string& name : names_read(expression))  // v_max of a v that matched nothing
    if (is_match_value(context.benchmark, name)) known.insert(name);
  std::set<std::string> asked;
  if (!column.relative_to.empty()) {
    expression = with_baseline_names(expression, asked);
    check_baseline_names(context.benchmark, column, asked, known, diagnostics);
    compared->names = asked;
    add_baseline_values(context.benchmark, column, rows, *compared);
    for (const std::string& name : asked) known.insert(baseline_name(name));
  }
  std::vector<Evaluated> results = evaluate(expression, rows, known, context.evaluator);
  for (Record& row : rows) {
    for (const std::string& name : asked) row.values.erase(baseline_name(name));
  }
  std::vector<Value> values(rows.size());
  size_t failed = 0;
  std::string why;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (results[i].present && results[i].result.ok) values[i] = results[i].value();
    if (results[i].present && !results[i].result.ok && failed++ == 0) why = results[i].result.error;
  }
  if (failed != 0) {
    std::string hint;
    if (why.find("'baseline'") != std::string::npos) {
      hint = "baseline.NAME is a value of the baseline row, which 'relative_to' says";
    }
    const std::string message = fmt::format("column '{}' could not be computed in {} of {} {}: {}",
                                            column.name.value, failed, rows.size(), in.called, why);
    const bool empty = std::ranges::all_of(values, [](const Value& value) { return value.none(); });
    if (empty && context.empty_column_is_error) {
      diagnostics.error(column.expression.mark, message, hint);
    } else {
      diagnostics.warning(column.expression.mark, message, hint);
    }
  }
  take_numbers(context, column, in, values);
  return values;
}

}  // namespace

std::string empty_cell(const Column& column) {
  return fmt::format("'{}' is empty: ", column.column_title());
}

void refuse_texts(const TextsFound& found, const std::vector<bool>& kept,
                  Diagnostics& diagnostics) {
  const Column& column = *found.column;
  const bool any = std::ranges::find(kept, true) != kept.end();
  size_t texts = 0, numbers = 0, all = 0;
  std::string first;
  for (const TextsFound::Cell& cell : found.cells) {
    if (!kept[cell.row] && !(cell.is_baseline && any)) continue;
    ++all;
    if (cell.is_number) ++numbers;
    if (cell.is_text && texts++ == 0) first = cell.text;
  }
  if (texts == 0) return;
  const char* needs = column.statistic != nullptr ? "a statistic"
                      : is_divided(column)        ? "`relative_to`"
                                                  : "`better`";
  const bool computed = !column.expression.value.empty();
  const Mark& mark = computed ? column.expression.mark : column.name.mark;
  std::string message =
      fmt::format("column '{}': {} needs numbers, and the value is the text '{}' in {} of {} {}",
                  column.column_title(), needs, first, texts, all, found.called);
  std::string hint = computed ? "let the expression give numbers, as float(x) is one"
                              : "give the pattern or parameter `type: float` or `type: int`";
  if (numbers == 0 || computed) {
    diagnostics.error(mark, std::move(message), std::move(hint));
  } else {
    diagnostics.warning(mark, std::move(message), std::move(hint));
  }
}

void FormerValues::keep(const Column& column) {
  if (!contains(order_.early, &column)) return;
  kept_.push_back({&column, column_values(rows_, value_name(column))});
}

// Columns to the left of several of one name read what the first of these replaced.
void FormerValues::give(const Column& column) {
  for (auto one = kept_.rbegin(); one != kept_.rend(); ++one)
    if (&column < one->by) exchange(*one);
}

void FormerValues::take_back(const Column& column) {
  for (Kept& one : kept_)
    if (&column < one.by) exchange(one);
}

void FormerValues::exchange(Kept& kept) {
  const std::string name = value_name(*kept.by);
  for (size_t i = 0; i < rows_.size(); ++i) {
    Value now = rows_[i].values.at(name);
    rows_[i].values.set(name, std::move(kept.values[i]));
    kept.values[i] = std::move(now);
  }
}

bool stands_again(const std::vector<Column>& columns, const Column& column, bool in_rows) {
  return std::ranges::any_of(columns, [&](const Column& one) {
    return &one < &column && !one.expression.value.empty() && one.name.value == column.name.value &&
           (!in_rows || one.statistic == nullptr);
  });
}

void add_in_repeats(const ResultContext& context, const Column& column, const Records& records,
                    const InRepeats& of, std::vector<Record>& repeats) {
  Diagnostics said_of_rows;
  const ResultContext here =
      context.saying_to(shows_repeats(column) ? context.diagnostics : said_of_rows);
  const bool single = std::ranges::adjacent_find(of.rows) == of.rows.end();
  const Computed in{repeats, single ? "rows" : "repeats", &of.rows, of.again};
  std::vector<Value> values = expression_values(here, column, records, in, nullptr);
  for (size_t i = 0; i < repeats.size(); ++i)
    repeats[i].values.set(column.name.value, std::move(values[i]), Asked::asked);
}

ColumnOrder columns_in_order(const Benchmark& benchmark, const std::vector<Column>& columns,
                             const Records& records, const std::vector<Record>& rows) {
  std::optional<std::set<std::string>> known;
  const auto is_value = [&](const std::string& name) {
    if (!known) known = known_names(rows, &records);
    return known->count(name) != 0 || is_match_value(benchmark, name);
  };
  return column_order(columns, is_value);
}

namespace {

bool is_derived(const Column& column) {
  if (!column.relative_to.empty() || !column.expression.value.empty()) return true;
  return column.statistic == nullptr && column.better != Better::unknown;
}

// Stores the statistic of an expression, which was computed in the repeats, under the plain name. The
// first column of the name decides.
void add_statistic(const Column& column, const std::vector<Column>& columns,
                   std::vector<Record>& rows) {
  const auto first = std::ranges::find_if(columns, [&](const Column& one) {
    return one.name.value == column.name.value && one.relative_to.empty();
  });
  if (&*first != &column || !owns_name(columns, column)) return;
  for (Record& row : rows)
    row.values.set(column.name.value, Value(row.values.at(statistic_key(column))), Asked::asked);
}

void add_derived_column(const ResultContext& context, const Column& column,
                        const std::vector<Column>& columns, const Records& records,
                        std::vector<Record>& rows) {
  const bool relative = !column.relative_to.empty();
  if (!relative && column.statistic != nullptr) return add_statistic(column, columns, rows);
  const std::string plain = column.statistic == nullptr ? column.name.value : statistic_key(column);
  Compared compared;
  std::vector<Value> values;
  if (!column.expression.value.empty()) {
    Diagnostics said_of_repeats;
    const bool said = !relative && shows_repeats(column);
    const ResultContext here = context.saying_to(said ? said_of_repeats : context.diagnostics);
    const bool again = stands_again(columns, column, true);
    values = expression_values(here, column, records, {rows, "rows", nullptr, again}, &compared);
    for (size_t i = 0; again && !is_divided(column) && i < rows.size(); ++i)
      rows[i].values.set(column.name.value, std::move(values[i]), Asked::asked);
    if (again) return;
  } else {
    values = column_values(rows, plain);
    if (needs_numbers(column)) find_texts(context, column, {rows}, values);
    if (!relative) return;
  }
  if (relative && compared.names.empty()) {
    relate(context.benchmark, column, names_through(columns, row_names(column)), rows, values);
    return;
  }
  const std::set<std::string> names = names_through(columns, compared.names);
  for (size_t i = 0; i < rows.size(); ++i) {
    if (!compared.names.empty() && compared.baseline[i] >= 0)
      take_marks(column, rows[static_cast<size_t>(compared.baseline[i])], names, rows[i]);
    rows[i].values.set(column.name.value, std::move(values[i]), Asked::asked);
  }
}

}  // namespace

void add_derived_columns(const ResultContext& context, const std::vector<Column>& columns,
                         const Records& records, std::vector<Record>& rows) {
  const ColumnOrder order = columns_in_order(context.benchmark, columns, records, rows);
  FormerValues former(order, rows);
  for (const Column* column : order.columns) {
    if (!is_derived(*column)) continue;
    former.keep(*column);
    former.give(*column);
    add_derived_column(context, *column, columns, records, rows);
    former.take_back(*column);
  }
}

}  // namespace tally
