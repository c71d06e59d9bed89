#include "engine/report/comparison_json.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "engine/report/comparison_table.h"
#include "engine/results/rows/mark_words.h"

namespace tally {
namespace {

using Json = nlohmann::ordered_json;
using statistics::Comparison;

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
