#include "engine/report/comparison_report.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <future>
#include <unordered_map>
#include <utility>

#include "engine/base/in_thread.h"
#include "engine/python/value.h"
#include "engine/report/report.h"
#include "engine/results/rows/records.h"
#include "engine/results/table/marks.h"

namespace tally {
namespace {

using statistics::Comparison;

bool is_marked(const std::string& marks, const char* mark) {
  return marks.find(mark) != std::string::npos;
}

std::string percent(double fraction) {
  return fmt::format("{:+.2f}", 100 * fraction);
}

std::string row_name(const RunComparison& comparison, size_t index) {
  const ComparedRow& row = comparison.rows[index];
  std::string text;
  for (size_t i = 0; i < comparison.parameters.size(); ++i)
    text += (text.empty() ? "" : ", ") + comparison.parameters[i] + "=" + row.values[i];
  return fmt::format("row {} ({}{}{})", index + 1, text, text.empty() ? "" : "; ", row.metric);
}

// The names of the two sides. Within one run they are the row of the base and the one beside it.
struct SideNames {
  const char *base, *other, *both;
  const char* of(bool in_base, bool in_other) const {
    if (in_base && in_other) return both;
    return in_base ? base : other;
  }
};
constexpr SideNames kTwoRuns = {"the first run", "the second run", "both runs"};
constexpr SideNames kOneRun = {"the base", "the new row", "both rows"};

const SideNames& names_of_sides(const RunComparison& comparison) {
  return comparison.one_run ? kOneRun : kTwoRuns;
}

// Whether more repeats alone would decide an unclear row.
bool wants_repeats(const ComparedRow& row) {
  const Comparison& result = row.result;
  return result.verdict == statistics::Verdict::unclear && row.why_not == nullptr &&
         !row.base_reused && !row.other_reused && std::min(result.n, result.m) != 0 &&
         result.positive;
}

constexpr const char* kNeeded = "needed n";

// How many repeats a side would decide the row. Empty: it is decided, or repeats do not help.
std::string needed_repeats(const ComparedRow& row) {
  if (!wants_repeats(row)) return {};
  return row.result.needed == 0 ? ">1000" : std::to_string(row.result.needed);
}

std::string why_unclear(const ComparedRow& row, const SideNames& sides) {
  const Comparison& result = row.result;
  if (row.why_not != nullptr)
    return fmt::format("it {} in {}", row.why_not,
                       sides.of(!row.base_measured(), !row.other_measured()));
  if (row.base_reused || row.other_reused)
    return fmt::format("it was reused, not measured, in {}",
                       sides.of(row.base_reused, row.other_reused));
  if (std::min(result.n, result.m) == 0) return "a side has no values";
  if (!result.positive) return "a ratio needs positive values";
  const bool few = std::min(result.n, result.m) < statistics::kFewestToCompare;
  std::string text = few ? fmt::format("{} and {} repeats", result.n, result.m)
                         : "the interval crosses the threshold, or chance could explain it";
  if (result.needed != 0) {
    text += fmt::format("; {}{} repeats a side would decide", few ? "" : "about ", result.needed);
  } else {
    text += "; more than 1000 repeats a side would be needed: the change is near the threshold";
  }
  return text;
}

}  // namespace

const char* verdict_word(statistics::Verdict verdict) {
  switch (verdict) {
    case statistics::Verdict::improved:
      return "improved";
    case statistics::Verdict::same:
      return "same";
    case statistics::Verdict::regressed:
      return "regressed";
    case statistics::Verdict::unclear:
      break;
  }
  return "unclear";
}

namespace {

// The cells of a row, in the order of the grid's header.
std::vector<std::string> cells_of(const ComparedRow& row, const Grid& grid, bool with_table,
                                  bool with_labels) {
  const Comparison& result = row.result;
  std::vector<std::string> cells;
  cells.reserve(grid.header.size());
  if (with_table) cells.push_back(row.table);
  cells.insert(cells.end(), row.values.begin(), row.values.end());
  if (with_labels) {
    cells.push_back(row.base_label);
    cells.push_back(row.other_label);
  }
  cells.push_back(row.metric);
  cells.push_back(result.n == 0 ? "" : fmt::format("{:.6g}", result.base));
  cells.push_back(std::to_string(result.n));
  cells.push_back(result.m == 0 ? "" : fmt::format("{:.6g}", result.other));
  cells.push_back(std::to_string(result.m));
  cells.push_back(result.positive ? percent(result.change) : "");
  cells.push_back(result.interval ? percent(result.interval->low) : "");
  cells.push_back(result.interval ? percent(result.interval->high) : "");
  cells.push_back(result.interval ? fmt::format("{:.2g}", result.adjusted_p) : "");
  if (grid.header.at(grid.header.size() - 2) == kNeeded) cells.push_back(needed_repeats(row));
  std::string verdict = verdict_word(result.verdict);
  add_mark(row.base_reused || row.other_reused, kReused, &verdict);
  for (const char* mark : {kBusy, kThrottled, kShort})
    add_mark(is_marked(row.base_mark, mark) || is_marked(row.other_mark, mark), mark, &verdict);
  cells.push_back(std::move(verdict));
  return cells;
}

}  // namespace

Grid comparison_grid(const RunComparison& comparison, const CompareOptions& options) {
  Grid grid;
  const std::vector<ComparedRow>& rows = comparison.rows;
  const bool several_tables = std::ranges::any_of(
      rows, [&](const ComparedRow& row) { return row.table != rows.front().table; });
  if (several_tables) grid.header.emplace_back("table");
  for (const std::string& name : comparison.parameters) grid.header.push_back(name);
  if (!options.by.empty()) {
    grid.header.push_back("base " + options.by);
    grid.header.push_back(options.by);
  }
  for (const char* title :
       {"metric", "base", "base n", "new", "new n", "change %", "low %", "high %", "p"})
    grid.header.emplace_back(title);
  if (std::ranges::any_of(rows, wants_repeats)) grid.header.emplace_back(kNeeded);
  grid.header.emplace_back("verdict");
  grid.rows.resize(rows.size());
  const auto fill = [&](size_t from, size_t to) {
    for (size_t i = from; i < to; ++i)
      grid.rows[i] = cells_of(rows[i], grid, several_tables, !options.by.empty());
  };
  // A thread takes longer to start than few rows take.
  constexpr size_t many = 2000;
  const size_t half = rows.size() < many ? 0 : rows.size() / 2;
  std::future<void> first;
  if (half != 0) first = in_thread([&] { fill(0, half); });
  fill(half, rows.size());
  if (half != 0) first.get();
  return grid;
}

namespace {

// Notes about rows. In a table, one that several rows have is said once.
class RowNotes {
 public:
  RowNotes(const RunComparison& comparison, NotesFor form) : comparison_(comparison), form_(form) {}

  void add(size_t index, std::string what) {
    const auto [entry, is_new] = note_of_.try_emplace(what, notes_.size());
    if (is_new || form_ == NotesFor::document) {
      notes_.push_back({std::move(what), {index}});
    } else if (notes_[entry->second].rows.back() != index) {
      notes_[entry->second].rows.push_back(index);
    }
  }

  std::vector<std::string> texts(size_t most) const {
    std::vector<std::string> texts;
    for (size_t i = 0; i < notes_.size() && i < most; ++i) {
      const std::vector<size_t>& rows = notes_[i].rows;
      std::vector<int> numbers;
      for (const size_t index : rows) numbers.push_back(static_cast<int>(index) + 1);
      texts.push_back((rows.size() == 1 ? row_name(comparison_, rows.front())
                                        : "rows " + numbers_in_words(numbers)) +
                      ": " + notes_[i].what);
    }
    return texts;
  }
  size_t left_out(size_t most) const { return notes_.size() - std::min(notes_.size(), most); }

 private:
  struct Note {
    std::string what;
    std::vector<size_t> rows;  // their indexes, rising
  };

  const RunComparison& comparison_;
  const NotesFor form_;
  std::vector<Note> notes_;
  std::unordered_map<std::string, size_t> note_of_;  // its index in notes_, by what it says
};

}  // namespace

std::vector<std::string> comparison_notes(const RunComparison& comparison, NotesFor form,
                                          size_t most, size_t* left_out) {
  RowNotes notes(comparison, form);
  const SideNames& sides = names_of_sides(comparison);
  const auto note_failed = [&](size_t i, int failed, int repeats, const char* side) {
    if (failed == 0 || failed == repeats) return;
    notes.add(i, fmt::format("{} of {} repeats have no value in {}", failed, repeats, side));
  };
  for (size_t i = 0; i < comparison.rows.size(); ++i) {
    const ComparedRow& row = comparison.rows[i];
    note_failed(i, row.base_failed, row.base_repeats, sides.base);
    note_failed(i, row.other_failed, row.other_repeats, sides.other);
    for (const char* mark : {kBusy, kThrottled, kShort}) {
      const bool base = is_marked(row.base_mark, mark);
      const bool other = is_marked(row.other_mark, mark);
      if (!base && !other) continue;
      notes.add(i, fmt::format("{}: {} in {}", mark,
                               mark == kBusy        ? "other programs used the machine"
                               : mark == kThrottled ? "the machine was throttled"
                                                    : "it was measured for less than a second",
                               sides.of(base, other)));
    }
    if (row.result.verdict != statistics::Verdict::unclear) continue;
    if (form == NotesFor::table && wants_repeats(row)) continue;
    notes.add(i, "unclear: " + why_unclear(row, sides));
  }
  *left_out = notes.left_out(most);
  return notes.texts(most);
}

namespace {

using Json = nlohmann::ordered_json;

Json number_if(bool known, double value) {
  return known && std::isfinite(value) ? Json(value) : Json();
}

Json side(size_t n, double median, State state, bool reused, const std::string& mark) {
  const auto marked = [&](const char* word) { return mark.find(word) != std::string::npos; };
  Json out = {{"n", n},
              {"median", number_if(n > 0, median)},
              {"failed", has_failed(state)},
              {"status", reused && state == State::done ? "reused" : state_name(state)},
              {"busy", marked(kBusy)},
              {"throttled", marked(kThrottled)}};
  if (marked(kShort)) out["short"] = true;
  return out;
}

Json compared_row_of(const ComparedRow& row, const RunComparison& comparison,
                     const CompareOptions& options) {
  const Comparison& result = row.result;
  Json parameters = Json::object();
  for (size_t i = 0; i < comparison.parameters.size(); ++i)
    parameters[comparison.parameters[i]] = row.values[i];
  const bool has_interval = result.interval.has_value();
  const statistics::Interval interval = result.interval.value_or(statistics::Interval{});
  Json out = {
      {"table", row.table},
      {"metric", row.metric},
      {"better", row.lower_is_better ? "lower" : "higher"},
      {"parameters", std::move(parameters)},
      {"base", side(result.n, result.base, row.base_state, row.base_reused, row.base_mark)},
      {"new", side(result.m, result.other, row.other_state, row.other_reused, row.other_mark)},
      {"change", number_if(result.positive, result.change)},
      {"low", number_if(has_interval, interval.low)},
      {"high", number_if(has_interval, interval.high)},
      {"p", number_if(has_interval, result.adjusted_p)},
      {"verdict", verdict_word(result.verdict)},
      {"repeats_needed", result.needed == 0 ? Json() : Json(result.needed)},
  };
  if (!options.by.empty()) {
    out["base"]["by"] = row.base_label;
    out["new"]["by"] = row.other_label;
  }
  return out;
}

}  // namespace

std::string comparison_json(const RunComparison& comparison, const CompareOptions& options,
                            const ReportedComparison& about, const std::string& version) {
  Json out = {{"format", "tally-comparison"},
              {"version", 1},
              {"program", "tally " + version},
              {"threshold", options.threshold},
              {"by", options.by.empty() ? Json() : Json(options.by)},
              {"runs", Json::array()},
              {"differences", Json::array()},
              {"rows", Json::array()},
              {"notes", about.notes}};
  for (const ReportedRun& run : about.runs) {
    Json one = {{"id", run.id}, {"directory", run.directory}, {"benchmark", run.benchmark}};
    for (const auto& [name, value] : run.machine) one["machine"][name] = value;
    out["runs"].push_back(std::move(one));
  }
  for (const ReportedDifference& one : about.differences)
    out["differences"].push_back({{"name", one.name}, {"base", one.base}, {"new", one.other}});
  for (const ComparedRow& row : comparison.rows)
    out["rows"].push_back(compared_row_of(row, comparison, options));
  return out.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace tally
