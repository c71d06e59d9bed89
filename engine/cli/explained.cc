#include "engine/cli/explained.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "engine/base/text.h"
#include "engine/cli/runs.h"

namespace tally {
namespace {

std::string point_key(const ExplainedPoint& point) {
  std::string key = point.step;
  for (const auto& [name, value] : point.parameters) key += '\0' + name + "=" + value;
  return key;
}

}  // namespace

Status explained_points(const Run& run, std::vector<ExplainedPoint>* points) {
  std::vector<Journal::Stored> workpackages;
  TRY(run.journal().workpackages(&workpackages));
  std::map<std::string, size_t> places;
  std::vector<std::vector<TimeWaterfall>> of_points;
  for (const Journal::Stored& stored : workpackages) {
    if (!finished_well(stored.workpackage.outcome.state)) continue;
    std::vector<TimeWaterfall> found;
    TRY(waterfalls_in(work_folder(run.directory(), stored), &found));
    if (found.empty()) continue;
    ExplainedPoint point{stored.step, stored.parameters, {}, 0};
    const auto [place, is_new] = places.try_emplace(point_key(point), points->size());
    if (is_new) {
      points->push_back(std::move(point));
      of_points.emplace_back();
    }
    auto& repeats = of_points[place->second];
    repeats.insert(repeats.end(), found.begin(), found.end());
  }
  for (size_t i = 0; i < points->size(); ++i) {
    (*points)[i].repeats = of_points[i].size();
    (*points)[i].waterfall = mean_of(of_points[i]);
  }
  return Status::ok();
}

std::vector<ExplainedPair> pairs_of(const std::vector<ExplainedPoint>& base,
                                    const std::vector<ExplainedPoint>& other) {
  if (base.size() == 1 && other.size() == 1) return {{base.data(), other.data()}};
  std::vector<ExplainedPair> pairs;
  for (const ExplainedPoint& point : base) {
    const auto same = std::ranges::find(other, point_key(point), point_key);
    if (same != other.end()) pairs.push_back({&point, &*same});
  }
  return pairs;
}

std::string label_of(const ExplainedPoint& point) {
  constexpr size_t kMost = 8;
  std::vector<std::string> values;
  for (const auto& [name, value] : point.parameters)
    if (values.size() < kMost) values.push_back(name + "=" + one_line(value));
  return values.empty() ? point.step : fmt::format("{} ({})", point.step, join(values, ", "));
}

}  // namespace tally
