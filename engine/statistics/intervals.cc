#include "engine/statistics/intervals.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "engine/statistics/random.h"

namespace tally::statistics {
namespace {

constexpr size_t kExactRanks = 1000;
constexpr double kNormalQuantile = 1.959963984540054;  // of 0.975

// P(B <= k) for B binomial with n and 1/2. Terms are exponentials of logarithms, so that a large n
// does not underflow.
double binomial_cdf(size_t n, size_t k) {
  const auto trials = static_cast<double>(n);
  double sum = 0;
  for (size_t i = 0; i <= k; ++i) {
    const auto successes = static_cast<double>(i);
    sum += std::exp(std::lgamma(trials + 1) - std::lgamma(successes + 1) -
                    std::lgamma(trials - successes + 1) - trials * std::log(2.0));
  }
  return sum;
}

// The bounds between which the middle 95 % of `values` lie, interpolated.
Interval middle(Sample values) {
  const double outside = (1 - kConfidence) / 2 * 100;
  return {percentile(values, outside), percentile(values, 100 - outside)};
}

// Draws medians of resamples. It draws ranks in the sorted sample and counts them, so that no
// resample has to be sorted.
class MedianResampler {
 public:
  explicit MedianResampler(const Sample& sample) : sorted_(sample), counts_(sample.size()) {
    std::ranges::sort(sorted_);
  }

  double draw(Random& random) {
    const size_t n = sorted_.size();
    std::fill(counts_.begin(), counts_.end(), 0);
    for (size_t i = 0; i < n; ++i) ++counts_[random.below(n)];
    size_t rank = 0;
    size_t seen = counts_[0];
    while (seen < (n + 1) / 2) seen += counts_[++rank];
    const double lower = sorted_[rank];
    if (n % 2 == 1 || seen > n / 2) return lower;
    do ++rank;
    while (counts_[rank] == 0);
    return lower + (sorted_[rank] - lower) / 2;
  }

 private:
  Sample sorted_;
  std::vector<size_t> counts_;
};

}  // namespace

double rank_confidence(size_t n, size_t k) {
  return k == 0 ? 0 : std::max(0.0, 1 - 2 * binomial_cdf(n, k - 1));
}

size_t median_rank(size_t n) {
  const double outside = (1 - kConfidence) / 2;
  if (n > kExactRanks) {
    const auto count = static_cast<double>(n);
    return static_cast<size_t>((count - kNormalQuantile * std::sqrt(count)) / 2);
  }
  size_t k = 0;
  while (2 * (k + 1) <= n && binomial_cdf(n, k) <= outside) ++k;
  return k;
}

MedianInterval median_interval(const Sample& sample) {
  Sample sorted = sample;
  std::ranges::sort(sorted);
  const size_t k = median_rank(sorted.size());
  MedianInterval out;
  out.is_range = k == 0;
  const size_t rank = std::max<size_t>(k, 1);
  out.interval = {sorted[rank - 1], sorted[sorted.size() - rank]};
  out.confidence = rank_confidence(sorted.size(), rank);
  return out;
}

Interval mean_interval(const Sample& sample, uint64_t seed, int resamples) {
  Random random(seed);
  Sample means;
  means.reserve(static_cast<size_t>(resamples));
  for (int i = 0; i < resamples; ++i) {
    double sum = 0;  // of differences: a large common part would cost digits
    for (size_t j = 0; j < sample.size(); ++j)
      sum += sample[random.below(sample.size())] - sample[0];
    means.push_back(sample[0] + sum / static_cast<double>(sample.size()));
  }
  return middle(std::move(means));
}

Interval median_ratio_interval(const Sample& a, const Sample& b, uint64_t seed, int resamples) {
  Random random(seed);
  MedianResampler of_a(a);
  MedianResampler of_b(b);
  Sample ratios;
  ratios.reserve(static_cast<size_t>(resamples));
  for (int i = 0; i < resamples; ++i) {
    const double base = of_a.draw(random);
    ratios.push_back(of_b.draw(random) / base);
  }
  return middle(std::move(ratios));
}

}  // namespace tally::statistics
