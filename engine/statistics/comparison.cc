#include "engine/statistics/comparison.h"

#include <algorithm>
#include <cmath>

#include "engine/statistics/rank_test.h"

namespace tally::statistics {
namespace {

bool can_decide(const Comparison& comparison) {
  return comparison.positive && comparison.interval.has_value();
}

Verdict verdict_of(const Comparison& comparison, bool lower_is_better, double threshold) {
  const auto [low, high] = *comparison.interval;
  const bool sure = comparison.adjusted_p < kLevel;
  if (sure && low > threshold) return lower_is_better ? Verdict::regressed : Verdict::improved;
  if (sure && high < -threshold) return lower_is_better ? Verdict::improved : Verdict::regressed;
  if (low >= -threshold && high <= threshold) return Verdict::same;
  return Verdict::unclear;
}

// The half width of an interval shrinks with the root of the number of values. It has to be smaller
// than the distance of the change from the nearer bound.
// Fewer than `least` values decide nothing.
size_t values_needed(const Comparison& comparison, double threshold, size_t least) {
  constexpr double kMost = 1000;
  if (!comparison.interval) return least;
  const double half = (comparison.interval->high - comparison.interval->low) / 2;
  const double distance = std::fabs(std::fabs(comparison.change) - threshold);
  const auto now = static_cast<double>(std::min(comparison.n, comparison.m));
  const double needed = std::ceil(now * (half / distance) * (half / distance));
  if (!(needed <= kMost)) return 0;
  return std::max({least, static_cast<size_t>(needed), std::min(comparison.n, comparison.m) + 1});
}

}  // namespace

Comparison compare(const Sample& base, const Sample& other, uint64_t seed, int resamples) {
  Comparison out;
  out.n = base.size();
  out.m = other.size();
  if (!base.empty()) out.base = median(base);
  if (!other.empty()) out.other = median(other);
  const auto above_zero = [](const Sample& sample) {
    return !sample.empty() && *std::ranges::min_element(sample) > 0;
  };
  out.positive = above_zero(base) && above_zero(other);
  if (!out.positive) return out;
  out.change = out.other / out.base - 1;
  if (std::min(out.n, out.m) < kFewestToCompare) return out;
  const Interval ratio = median_ratio_interval(base, other, seed, resamples);
  out.interval = {ratio.low - 1, ratio.high - 1};
  out.p = mann_whitney(base, other).p;
  return out;
}

void decide(std::vector<Comparison>& comparisons, const std::vector<bool>& lower_is_better,
            double threshold) {
  std::vector<double> p;
  for (const Comparison& comparison : comparisons) {
    if (can_decide(comparison)) p.push_back(comparison.p);
  }
  const std::vector<double> adjusted = holm(p);
  // Rows with too few values join those that are decided, as soon as they have enough.
  const auto tests = static_cast<size_t>(std::ranges::count_if(
      comparisons, [](const Comparison& comparison) { return comparison.positive; }));
  const size_t least = samples_needed(kLevel / static_cast<double>(std::max<size_t>(tests, 1)));
  size_t at = 0;
  for (size_t i = 0; i < comparisons.size(); ++i) {
    Comparison& comparison = comparisons[i];
    if (can_decide(comparison)) {
      comparison.adjusted_p = adjusted[at++];
      comparison.verdict = verdict_of(comparison, lower_is_better[i], threshold);
    }
    if (comparison.verdict == Verdict::unclear && comparison.positive)
      comparison.needed = values_needed(comparison, threshold, least);
  }
}

}  // namespace tally::statistics
