#include "src/device/autotune.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

namespace tally::train {
namespace {

constexpr size_t semifinalists = 12, finalists = 8;
constexpr double turn_milliseconds = 6;
// Algorithms that take less than this do not bring a GPU to its power limit.
constexpr double lasting_milliseconds = 0.02;
// The share by which a finalist may be behind in short turns. The best in long runs of 78 GEMMs of
// GPT-2 124M and 355M were up to 8% behind.
constexpr double behind = 1.12;
// A GPU at its power limit takes about a tenth of a second to reach the clock that a kernel allows.
constexpr double settling_milliseconds = 80, lasting_turn_milliseconds = 100;
// Two equal long runs differ by up to a percent, so three decide, among those within 2% of the best
// of the first.
constexpr int lasting_rounds = 3;
constexpr double near = 1.02;

// Algorithms by their milliseconds, the best first.
using Ranking = std::vector<std::pair<double, size_t>>;

int runs_of(double milliseconds, double ms) {
  return static_cast<int>(milliseconds / ms) + 1;
}

Ranking single_runs(size_t ways, const TimeRuns& time) {
  Ranking ranking;
  for (size_t way = 0; way < ways; ++way) {
    // The first run may load a kernel, which takes longer than running most of them.
    double ms = time(way, 1);
    if (std::isfinite(ms)) {
      ms = time(way, 1);
      ms = std::min(ms, time(way, 1));
    }
    ranking.emplace_back(ms, way);
  }
  std::sort(ranking.begin(), ranking.end());
  return ranking;
}

void short_turns(const TimeRuns& time, Ranking* ranking) {
  constexpr size_t rounds = 5;
  const double best = ranking->front().first;
  const int runs = std::clamp(static_cast<int>(turn_milliseconds / std::max(best, 1e-3)), 1, 20);
  std::vector<std::vector<double>> turns(ranking->size());
  for (size_t round = 0; round < rounds; ++round) {
    for (size_t i = 0; i < ranking->size(); ++i)
      turns[i].push_back(time((*ranking)[i].second, runs));
  }
  for (size_t i = 0; i < ranking->size(); ++i) {
    const auto middle = turns[i].begin() + rounds / 2;
    std::nth_element(turns[i].begin(), middle, turns[i].end());
    (*ranking)[i].first = *middle;
  }
  std::sort(ranking->begin(), ranking->end());
}

void drop_behind(double factor, Ranking* ranking) {
  const double best = std::min_element(ranking->begin(), ranking->end())->first;
  std::erase_if(*ranking, [&](const auto& r) { return r.first > factor * best; });
}

void lasting_turns(size_t ways, const TimeRuns& time, Ranking* ranking) {
  std::vector<double> sums(ways);
  for (int round = 0; round < lasting_rounds && ranking->size() > 1; ++round) {
    for (auto& [ms, way] : *ranking) {
      time(way, runs_of(settling_milliseconds, ms));
      ms = time(way, runs_of(lasting_turn_milliseconds, ms));
      sums[way] += ms;
    }
    if (round == 0) drop_behind(near, ranking);
  }
  for (auto& [ms, way] : *ranking) ms = sums[way];
  std::sort(ranking->begin(), ranking->end());
}

}  // namespace

size_t autotune(size_t ways, const TimeRuns& time, const std::function<void()>& before_long) {
  if (ways == 0) return 0;
  Ranking ranking = single_runs(ways, time);
  if (!std::isfinite(ranking.front().first)) return ways;
  std::erase_if(ranking, [](const auto& r) { return !std::isfinite(r.first); });
  ranking.resize(std::min(ranking.size(), semifinalists));
  short_turns(time, &ranking);
  const double best = ranking.front().first;
  if (best < lasting_milliseconds || !std::isfinite(best)) return ranking.front().second;
  drop_behind(behind, &ranking);
  ranking.resize(std::min(ranking.size(), finalists));
  if (ranking.size() > 1) before_long();
  lasting_turns(ways, time, &ranking);
  return ranking.front().second;
}

}  // namespace tally::train
