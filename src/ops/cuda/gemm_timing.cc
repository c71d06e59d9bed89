#include "src/ops/cuda/gemm_timing.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "src/ops/cuda/check.h"
#include "src/ops/cuda/gemm.h"

namespace tally::train::cuda {
namespace {

constexpr size_t finalists = 4;
constexpr double turn_milliseconds = 6;

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

}  // namespace

size_t best_of(CudaStream& s, const std::vector<Way>& ways) {
  Event from, to;
  std::vector<std::pair<double, size_t>> times;
  double best = INFINITY;
  time_runs(s, ways[0], 1, from, to);  // loads the library's kernels
  for (size_t i = 0; i < ways.size(); ++i) {
    double ms = time_runs(s, ways[i], 1, from, to);
    if (ms < 2 * best) ms = time_runs(s, ways[i], 1, from, to);
    best = std::min(best, ms);
    times.emplace_back(ms, i);
  }
  std::sort(times.begin(), times.end());
  times.resize(std::min(times.size(), finalists));
  constexpr int rounds = 5;
  const int runs = std::clamp(static_cast<int>(turn_milliseconds / std::max(best, 1e-3)), 1, 20);
  std::vector<std::vector<double>> turns(times.size());
  for (int round = 0; round < rounds; ++round) {
    for (size_t i = 0; i < times.size(); ++i)
      turns[i].push_back(time_runs(s, ways[times[i].second], runs, from, to));
  }
  for (size_t i = 0; i < times.size(); ++i) {
    const auto middle = turns[i].begin() + rounds / 2;
    std::nth_element(turns[i].begin(), middle, turns[i].end());
    times[i].first = *middle;
  }
  return std::min_element(times.begin(), times.end())->second;
}

double time_on(CudaStream& s, const std::function<void()>& work) {
  Event from, to;
  std::vector<double> runs;
  work();
  for (int i = 0; i < 5; ++i) {
    CUDA_CHECK(cudaEventRecord(from.get(), s.stream()));
    work();
    CUDA_CHECK(cudaEventRecord(to.get(), s.stream()));
    runs.push_back(milliseconds(from, to));
  }
  std::nth_element(runs.begin(), runs.begin() + 2, runs.end());
  return runs[2];
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
  int best = 0;
  double least = INFINITY;
  for (size_t i = 0; i < variants.size(); ++i) {
    const double ms = time_on(s, variants[i]);
    if (ms < least) {
      least = ms;
      best = static_cast<int>(i);
    }
  }
  s.gemms().remember(key, best);
  return best;
}

}  // namespace tally::train::cuda
