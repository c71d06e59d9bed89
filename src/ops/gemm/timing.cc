#include "src/ops/gemm/timing.h"

#include <algorithm>
#include <cmath>

#include "src/device/autotune.h"
#include "src/device/cuda/check.h"
#include "src/ops/gemm/gemm.h"

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

// Milliseconds per run, of `runs` back to back; infinity when it does not run.
double time_runs(CudaStream& s, const Candidate& candidate, int runs, const Event& from,
                 const Event& to) {
  CUDA_CHECK(cudaEventRecord(from.get(), s.stream()));
  for (int i = 0; i < runs; ++i) {
    if (!candidate()) return INFINITY;
  }
  CUDA_CHECK(cudaEventRecord(to.get(), s.stream()));
  return milliseconds(from, to) / runs;
}

}  // namespace

size_t best_of(CudaStream& s, const std::vector<Candidate>& candidates) {
  const Event from, to;
  return autotune(
      candidates.size(),
      [&](size_t i, int runs) { return time_runs(s, candidates[i], runs, from, to); },
      [&] { s.announce_long_autotune(); });
}

int fastest(const CudaCompute& c, const std::string& key,
            const std::vector<std::function<void()>>& variants) {
  CudaStream& s = c.stream;
  TunedGemms& gemms = tuned_gemms(s);
  const auto count = static_cast<int>(variants.size());
  gemms.variants = count;
  if (gemms.forced >= 0) return std::min(gemms.forced, count - 1);
  if (c.options.deterministic || variants.size() < 2) return 0;
  const int known = gemms.choice(key);
  if (known >= 0 && known < count) return known;
  if (s.capturing()) return 0;
  std::vector<Candidate> candidates;
  for (const auto& variant : variants) {
    candidates.emplace_back([&variant] {
      variant();
      return true;
    });
  }
  const auto best = static_cast<int>(best_of(s, candidates));
  gemms.remember(key, best);
  return best;
}

}  // namespace tally::train::cuda
