// Autotune on a simulated GPU that slows down while a kernel draws much power.
#include "src/device/autotune.h"

#include <doctest/doctest.h>

#include <cmath>
#include <random>
#include <vector>

namespace tally::train {
namespace {

struct Kernel {
  double burst, lasting;  // ms a run, before and after a GPU at its power limit has settled
  double load = 0;        // ms, once
  bool runs = true;
};

class SimulatedGpu {
 public:
  SimulatedGpu(std::vector<Kernel> kernels, double noise, unsigned seed = 1)
      : kernels_(std::move(kernels)), loaded_(kernels_.size()), random_(seed), noise_(noise) {}

  size_t choose() {
    return autotune(
        kernels_.size(), [this](size_t way, int runs) { return time(way, runs); },
        [this] { ++announced; });
  }

  int announced = 0;
  double spent = 0, longest = 0;  // ms, in all and in one measurement

 private:
  double time(size_t way, int runs) {
    const Kernel& k = kernels_[way];
    if (!k.runs) return INFINITY;
    if (way != last_) busy_ = 0;
    last_ = way;
    double ms = loaded_[way] ? 0 : k.load;
    loaded_[way] = true;
    for (int i = 0; i < runs; ++i) {
      const double settled = std::min(1.0, busy_ / 70);
      const double one = k.burst + settled * (k.lasting - k.burst);
      busy_ += one;
      ms += one;
    }
    ms *= 1 + std::normal_distribution<double>(0, noise_)(random_);
    spent += ms;
    longest = std::max(longest, ms);
    return ms / runs;
  }

  std::vector<Kernel> kernels_;
  std::vector<bool> loaded_;
  std::mt19937 random_;
  double noise_, busy_ = 0;
  size_t last_ = 0;
};

TEST_CASE("autotune: lasting speed wins over a fast burst") {
  // As eight algorithms of one GEMM were: the best in long turns is the sixth in short ones.
  SimulatedGpu gpu({{1.895, 1.992},
                    {1.896, 2.004},
                    {1.909, 2.006},
                    {1.910, 1.985},
                    {1.911, 1.949},
                    {1.912, 1.914},
                    {1.925, 1.935},
                    {1.957, 2.059}},
                   0.0005);
  CHECK(gpu.choose() == 5);
  CHECK(gpu.announced == 1);
  CHECK(gpu.spent < 3000);
}

TEST_CASE("autotune: loading a kernel does not count") {
  // More algorithms than are kept after single runs; the best loads longest.
  std::vector<Kernel> kernels(20, Kernel{1.0, 1.0, 0.5});
  kernels[17] = {0.9, 0.9, 50};
  CHECK(SimulatedGpu(kernels, 0.001).choose() == 17);
}

TEST_CASE("autotune: equal measurements that differ by a percent") {
  // Over many draws the chosen algorithm is near the best, and hardly behind it on average. One
  // long turn each loses twice as much.
  double lost = 0;
  constexpr int draws = 300;
  for (unsigned seed = 0; seed < draws; ++seed) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<double> spread(0, 0.06);
    std::vector<Kernel> kernels;
    double best = INFINITY;
    for (int i = 0; i < 8; ++i) {
      const double lasting = 2.5 * (1 + spread(random));
      kernels.push_back({lasting * (1 - spread(random)), lasting, 3});
      best = std::min(best, lasting);
    }
    SimulatedGpu gpu(kernels, 0.008, seed);
    const double taken = kernels[gpu.choose()].lasting / best - 1;
    CHECK(taken < 0.02);
    lost += taken / draws;
  }
  CHECK(lost < 0.0015);
}

TEST_CASE("autotune: algorithms that do not run") {
  const Kernel fails{1, 1, 0, false};
  CHECK(SimulatedGpu({fails, {2, 2}, fails, {3, 3}}, 0).choose() == 1);
  CHECK(SimulatedGpu({fails, fails}, 0).choose() == 2);
  CHECK(SimulatedGpu({}, 0).choose() == 0);
}

TEST_CASE("autotune: no long turns where they decide nothing") {
  SimulatedGpu one({{2, 2}}, 0);
  CHECK(one.choose() == 0);
  CHECK(one.announced == 0);
  SimulatedGpu far({{2, 2}, {2.5, 1.9}}, 0);  // too far behind in short turns
  CHECK(far.choose() == 0);
  CHECK(far.announced == 0);
  CHECK(far.longest < 20);
  SimulatedGpu brief({{0.011, 0.012}, {0.010, 0.013}, {0.012, 0.012}}, 0);
  CHECK(brief.choose() == 1);
  CHECK(brief.announced == 0);
  CHECK(brief.longest < 1);
}

}  // namespace
}  // namespace tally::train
