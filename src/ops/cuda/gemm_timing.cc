#include "src/ops/cuda/gemm_timing.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "src/ops/cuda/check.h"
#include "src/ops/cuda/gemm.h"

namespace tally::train::cuda {
namespace {

constexpr size_t semifinalists = 12, finalists = 8;
constexpr double turn_milliseconds = 6;
// Ways that take less than this are not what brings a GPU to its power limit.
constexpr double lasting_milliseconds = 0.02;
// By how much a finalist may be behind in short turns. Of 78 products of GPT-2 124M and 355M the
// best in long runs were up to 8 % behind.
constexpr double behind = 1.12;
// A GPU at its power limit takes about a tenth of a second to settle on the clock that a kernel
// leaves it.
constexpr double settling_milliseconds = 80, lasting_turn_milliseconds = 100;
// Two equal long runs differ by up to a percent, so that three decide; but only among those that
// the first leaves within 2 %.
constexpr int lasting_rounds = 3;
constexpr double near = 1.02;

class Event {
 public:
  Event() { CUDA_CHECK(cudaEventCreate(&event_)); }
  ~Event() { cudaEventDestroy(event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  cudaEvent_t get() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

double milliseconds(const Event& from, const Event& to) {
  float ms = 0;
  CUDA_CHECK(cudaEventSynchronize(to.get()));
  CUDA_CHECK(cudaEventElapsedTime(&ms, from.get(), to.get()));
  return ms;
}

// Milliseconds a run, of `runs` back to back; infinity when it does not run.
double time_runs(CudaStream& s, const Way& way, int runs, const Event& from, const Event& to) {
  CUDA_CHECK(cudaEventRecord(from.get(), s.stream()));
  for (int i = 0; i < runs; ++i) {
    if (!way()) return INFINITY;
  }
  CUDA_CHECK(cudaEventRecord(to.get(), s.stream()));
  return milliseconds(from, to) / runs;
}

// Ways by their milliseconds, the best first.
using Ranking = std::vector<std::pair<double, size_t>>;

Ranking single_runs(CudaStream& s, const std::vector<Way>& ways, const Event& from,
                    const Event& to) {
  Ranking ranking;
  for (size_t i = 0; i < ways.size(); ++i) {
    // The first run may load a kernel, which takes longer than most run.
    double ms = time_runs(s, ways[i], 1, from, to);
    for (int again = 0; again < 2 && std::isfinite(ms); ++again) {
      const double now = time_runs(s, ways[i], 1, from, to);
      ms = again == 0 ? now : std::min(ms, now);
    }
    ranking.emplace_back(ms, i);
  }
  std::sort(ranking.begin(), ranking.end());
  return ranking;
}

void short_turns(CudaStream& s, const std::vector<Way>& ways, const Event& from, const Event& to,
                 Ranking* ranking) {
  constexpr int rounds = 5;
  const double best = ranking->front().first;
  const int runs = std::clamp(static_cast<int>(turn_milliseconds / std::max(best, 1e-3)), 1, 20);
  std::vector<std::vector<double>> turns(ranking->size());
  for (int round = 0; round < rounds; ++round) {
    for (size_t i = 0; i < ranking->size(); ++i)
      turns[i].push_back(time_runs(s, ways[(*ranking)[i].second], runs, from, to));
  }
  for (size_t i = 0; i < ranking->size(); ++i) {
    const auto middle = turns[i].begin() + rounds / 2;
    std::nth_element(turns[i].begin(), middle, turns[i].end());
    (*ranking)[i].first = *middle;
  }
  std::sort(ranking->begin(), ranking->end());
}

double lasting_run(CudaStream& s, const Way& way, double ms, const Event& from, const Event& to) {
  time_runs(s, way, static_cast<int>(settling_milliseconds / ms) + 1, from, to);
  return time_runs(s, way, static_cast<int>(lasting_turn_milliseconds / ms) + 1, from, to);
}

void drop_behind(double factor, Ranking* ranking) {
  const double best = std::min_element(ranking->begin(), ranking->end())->first;
  std::erase_if(*ranking, [&](const auto& r) { return r.first > factor * best; });
}

void lasting_turns(CudaStream& s, const std::vector<Way>& ways, const Event& from, const Event& to,
                   Ranking* ranking) {
  std::vector<double> sums(ways.size());
  for (int round = 0; round < lasting_rounds && ranking->size() > 1; ++round) {
    for (auto& [ms, way] : *ranking) {
      ms = lasting_run(s, ways[way], ms, from, to);
      sums[way] += ms;
    }
    if (round == 0) drop_behind(near, ranking);
  }
  for (auto& [ms, way] : *ranking) ms = sums[way];
  std::sort(ranking->begin(), ranking->end());
}

}  // namespace

size_t best_of(CudaStream& s, const std::vector<Way>& ways) {
  const Event from, to;
  Ranking ranking = single_runs(s, ways, from, to);
  ranking.resize(std::min(ranking.size(), semifinalists));
  short_turns(s, ways, from, to, &ranking);
  const double best = ranking.front().first;
  if (!std::isfinite(best)) return ways.size();
  if (best < lasting_milliseconds) return ranking.front().second;
  drop_behind(behind, &ranking);
  ranking.resize(std::min(ranking.size(), finalists));
  if (ranking.size() > 1) s.announce_long_tuning();
  lasting_turns(s, ways, from, to, &ranking);
  return ranking.front().second;
}

int fastest(CudaStream& s, const std::string& key,
            const std::vector<std::function<void()>>& variants) {
  const auto count = static_cast<int>(variants.size());
  s.gemms().variants = count;
  if (s.gemms().forced >= 0) return std::min(s.gemms().forced, count - 1);
  if (s.deterministic || variants.size() < 2) return 0;
  const int known = s.gemms().choice(key);
  if (known >= 0 && known < count) return known;
  if (s.capturing()) return 0;
  std::vector<Way> ways;
  for (const auto& variant : variants) {
    ways.emplace_back([&variant] {
      variant();
      return true;
    });
  }
  const auto best = static_cast<int>(best_of(s, ways));
  s.gemms().remember(key, best);
  return best;
}

}  // namespace tally::train::cuda
