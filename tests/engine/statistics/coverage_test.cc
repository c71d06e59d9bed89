// How often the 95 % intervals contain the true value, simulated.
#include <doctest/doctest.h>

#include "engine/statistics/intervals.h"
#include "tests/engine/statistics/distributions.h"

using namespace tally::statistics;

TEST_CASE("intervals of the median contain it as often as the ranks say") {
  constexpr int kTrials = 40000;  // the standard error of 97 % is 0.09 %
  Random random(20261125);
  for (const simulated::Distribution& distribution : simulated::distributions()) {
    for (const size_t n : {6, 8, 10, 20, 50}) {
      int inside = 0;
      for (int i = 0; i < kTrials; ++i) {
        const Interval found = median_interval(draw(distribution, n, random)).interval;
        if (found.low <= distribution.median && distribution.median <= found.high) ++inside;
      }
      const double coverage = static_cast<double>(inside) / kTrials;
      INFO(distribution.name, ", n = ", n);
      CHECK(coverage >= 0.95);
      CHECK(std::fabs(coverage - rank_confidence(n, median_rank(n))) < 0.005);
    }
  }
}

// Expected: scipy.stats.bootstrap (SciPy 1.17.1, method percentile) in 4,000 samples of the same
// distributions. tests/peer/statistics_parity.py compares the bounds themselves.
TEST_CASE("bootstrap intervals of the mean are too narrow for few values") {
  struct Row {
    size_t n;
    double normal, log_normal, bimodal;
  };
  constexpr Row kExpected[] = {
      {6, 0.864, 0.749, 0.888},  {8, 0.881, 0.775, 0.910},  {10, 0.899, 0.790, 0.920},
      {20, 0.928, 0.857, 0.939}, {50, 0.940, 0.896, 0.943},
  };
  constexpr int kTrials = 1500;
  constexpr int kResamples = 1000;
  Random random(27);
  const std::vector<simulated::Distribution> all = simulated::distributions();
  for (const Row& row : kExpected) {
    const double expected[] = {row.normal, row.log_normal, row.bimodal};
    for (size_t at = 0; at < all.size(); ++at) {
      int inside = 0;
      for (int i = 0; i < kTrials; ++i) {
        const Sample sample = draw(all[at], row.n, random);
        const Interval found = mean_interval(sample, random.next(), kResamples);
        if (found.low <= all[at].mean && all[at].mean <= found.high) ++inside;
      }
      INFO(all[at].name, ", n = ", row.n);
      CHECK(static_cast<double>(inside) / kTrials == doctest::Approx(expected[at]).epsilon(0.03));
    }
  }
}
