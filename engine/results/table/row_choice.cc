#include "engine/results/table/row_choice.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/base/text.h"
#include "engine/python/guarded_literal.h"
#include "engine/python/value.h"
#include "engine/results/table/known_truth.h"
#include "engine/results/table/shown_expression.h"

namespace tally {

Matching matching_rows(const RowCondition& condition, const std::vector<Record>& rows,
                       Evaluator& evaluator, Diagnostics& diagnostics) {
  const Text& filter = condition.text;
  const WithoutValue without = condition.without;
  Matching matching;
  if (strip(filter.value).empty()) {
    for (size_t i = 0; i < rows.size(); ++i) matching.rows.push_back(i);
    return matching;
  }
  std::vector<Evaluated> results =
      evaluate(filter.value, rows, known_names(rows, nullptr), evaluator, {without, true});
  size_t failed = 0;
  std::string why, hint;
  for (size_t i = 0; i < rows.size(); ++i) {
    Evaluated& e = results[i];
    // Python would take it for true. In JUBE's files it is.
    if (e.result.ok && e.type == "str" && without != WithoutValue::text &&
        says_flag(e.result.value)) {
      const std::string name = shown_expression(filter.value);
      e.result.ok = false;
      e.result.error = fmt::format(
          "'{0}' is the text '{1}', which is neither True nor False: write {0} == '{1}'", name,
          e.result.value);
    }
    const bool fails = e.present && !e.result.ok;
    if (fails && failed++ == 0) why = e.result.error;
    if (fails && !e.lacks.empty())
      hint = fmt::format("a row without a value of '{0}' has the text ${0} there", e.lacks);
    if (e.present && e.result.ok && truth(e.result.value)) {
      matching.rows.push_back(i);
    } else if (!fails && !e.lacks.empty() && (without != WithoutValue::text || !e.present)) {
      matching.lacking.push_back(i);
    }
  }
  if (failed != 0) {
    diagnostics.error(
        filter.mark,
        fmt::format("{} \"{}\" could not be evaluated for {} of {} rows: {}", condition.called,
                    shown_expression(filter.value), failed, rows.size(), why),
        hint);
  }
  return matching;
}

namespace {

KnownValue known_cell(const std::string& name, const Value* value) {
  KnownValue known;
  if (value == nullptr || value->nan()) return known;
  if (!value->number()) return known_text(name, value->str());
  known.kind = KnownValue::Kind::number;
  known.known = true;
  known.number = *value;
  known.text = value->str();
  known.name = name;
  return known;
}

// Whether the filter is false for the row, whatever the values that it lacks would be.
bool is_left_out(const std::string& filter, const Record& row) {
  std::string mixed;
  const Truth truth = known_truth(
      filter, [&](const std::string& name) { return known_cell(name, row.values.find(name)); },
      &mixed);
  return truth == Truth::no && mixed.empty();
}

}  // namespace

Matching matching_rows_or_failed(const RowCondition& condition, const std::vector<Record>& rows,
                                 Evaluator& evaluator, Diagnostics& diagnostics) {
  Matching matching = matching_rows(condition, rows, evaluator, diagnostics);
  std::vector<size_t> lacking;
  for (const size_t i : matching.lacking) {
    const bool stays = !rows[i].measured() && !is_left_out(condition.text.value, rows[i]);
    (stays ? matching.rows : lacking).push_back(i);
  }
  matching.lacking = std::move(lacking);
  std::ranges::sort(matching.rows);
  return matching;
}

namespace {

// JUBE's comparison of rows. The first key in which they differ decides. None against anything, and
// a number against a string, are unordered. This is not a valid ordering, so the result depends on
// the sort algorithm. This class does what Python's sort does for up to 63 rows (takes the first
// run, then inserts), and merges beyond that.
class RowOrder {
 public:
  RowOrder(const std::vector<std::string>& keys, const std::vector<Record>& rows)
      : keys_(keys), rows_(rows) {}
  // Whether row `a` comes before row `b`.
  bool operator()(size_t a, size_t b) const {
    for (const std::string& key : keys_) {
      const Value& x = rows_[a].values.at(key);
      const Value& y = rows_[b].values.at(key);
      if (x == y) continue;
      return less(x, y);
    }
    return false;
  }

 private:
  const std::vector<std::string>& keys_;
  const std::vector<Record>& rows_;
};

using Order = std::vector<size_t>;

void insertion_sort(Order& order, size_t from, size_t to, size_t sorted, const RowOrder& before) {
  for (size_t i = sorted; i < to; ++i) {
    size_t pivot = order[i];
    size_t low = from;
    size_t high = i;
    while (low < high) {
      size_t middle = (low + high) / 2;
      if (before(pivot, order[middle])) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    for (size_t j = i; j > low; --j) order[j] = order[j - 1];
    order[low] = pivot;
  }
}

// Finds the run that starts at `from`: ascending, or strictly descending and then reversed. Returns
// its end.
size_t take_run(Order& order, size_t from, size_t to, const RowOrder& before) {
  size_t end = from + 1;
  if (end >= to) return to;
  bool down = before(order[end], order[end - 1]);
  ++end;
  while (end < to && before(order[end], order[end - 1]) == down) ++end;
  if (down) {
    std::reverse(order.begin() + static_cast<std::ptrdiff_t>(from),
                 order.begin() + static_cast<std::ptrdiff_t>(end));
  }
  return end;
}

}  // namespace

std::vector<bool> may_choose(const RowCondition& condition, const std::vector<Record>& rows,
                             const std::vector<Record>& missing, Evaluator& evaluator) {
  std::vector<Record> all = rows;
  all.insert(all.end(), missing.begin(), missing.end());
  Diagnostics failures;
  const Matching found = matching_rows_or_failed(condition, all, evaluator, failures);
  std::vector<bool> chosen(missing.size(), failures.has_errors());
  for (const size_t row : found.rows) {
    if (row >= rows.size()) chosen[row - rows.size()] = true;
  }
  return chosen;
}

void sort_rows(const std::vector<std::string>& keys, std::vector<Record>& rows) {
  if (keys.empty() || rows.size() < 2) return;
  const RowOrder before(keys, rows);
  Order order(rows.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  constexpr size_t kBlock = 64;
  if (rows.size() < kBlock) {
    size_t sorted = take_run(order, 0, order.size(), before);
    insertion_sort(order, 0, order.size(), sorted, before);
  } else {
    for (size_t from = 0; from < order.size(); from += kBlock) {
      insertion_sort(order, from, std::min(from + kBlock, order.size()), from + 1, before);
    }
    Order merged(order.size());
    for (size_t width = kBlock; width < order.size(); width *= 2) {
      for (size_t from = 0; from < order.size(); from += 2 * width) {
        size_t middle = std::min(from + width, order.size());
        size_t to = std::min(from + 2 * width, order.size());
        size_t i = from;
        size_t j = middle;
        for (size_t k = from; k < to; ++k) {
          bool right = i == middle || (j < to && before(order[j], order[i]));
          merged[k] = order[right ? j++ : i++];
        }
      }
      std::swap(order, merged);
    }
  }
  std::vector<Record> sorted;
  sorted.reserve(rows.size());
  for (size_t i : order) sorted.push_back(std::move(rows[i]));
  rows = std::move(sorted);
}

}  // namespace tally
