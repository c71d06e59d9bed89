#include <cmath>
#include <nlohmann/json.hpp>

#include "engine/report/history.h"
#include "engine/results/table/marks.h"

namespace tally {
namespace {

using Json = nlohmann::ordered_json;

Json finite_number(double value) {
  return std::isfinite(value) ? Json(value) : Json();
}

Json change_of(const HistoryPoint::Change& change) {
  const bool ratio = change.before > 0;
  return {{"word", change.word},
          {"before", finite_number(change.before)},
          {"after", finite_number(change.after)},
          {"change", ratio ? finite_number(change.after / change.before - 1) : Json()}};
}

Json point_of(const HistoryPoint& point) {
  const HistoryEntry& entry = point.entry;
  Json out = {
      {"run", entry.run},
      {"start", entry.start},
      {"sample", entry.sample},
      {"of", entry.repeats},
      {"median", point.median ? finite_number(*point.median) : Json()},
      {"low", point.interval ? finite_number(point.interval->low) : Json()},
      {"high", point.interval ? finite_number(point.interval->high) : Json()},
      {"failed", entry.failed},
      {"reused", entry.mark == kReused},
      {"busy", entry.busy},
      {"throttled", entry.throttled},
      {"change", point.change ? change_of(*point.change) : Json()},
  };
  if (entry.too_short) out["short"] = true;
  for (const auto& [name, value] : entry.machine) out["machine"][name] = value;
  return out;
}

}  // namespace

std::string history_json(const std::string& metric, const std::vector<HistorySeries>& series,
                         const std::string& version) {
  Json out = {{"format", "tally-metric-history"},
              {"version", 1},
              {"program", "tally " + version},
              {"metric", metric},
              {"series", Json::array()}};
  for (const HistorySeries& one : series) {
    const HistoryEntry& entry = one.front().entry;
    Json points = Json::array();
    for (const HistoryPoint& point : one) points.push_back(point_of(point));
    out["series"].push_back({{"benchmark", entry.benchmark},
                             {"table", entry.table},
                             {"parameters", entry.parameters},
                             {"unit", entry.unit},
                             {"better", entry.better.empty() ? Json() : Json(entry.better)},
                             {"points", std::move(points)}});
  }
  return out.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace tally
