#include "src/ops/cuda/gemm_timing.h"

#include <algorithm>
#include <cmath>

#include "src/ops/cuda/check.h"
#include "src/ops/cuda/gemm.h"
#include "src/ops/fastest_way.h"

namespace tally::train::cuda {
namespace {

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
  const Event from, to;
  return fastest_way(
      ways.size(), [&](size_t way, int runs) { return time_runs(s, ways[way], runs, from, to); },
      [&] { s.announce_long_tuning(); });
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
