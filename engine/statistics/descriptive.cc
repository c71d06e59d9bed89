#include "engine/statistics/descriptive.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tally::statistics {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
// hyperfine's OUTLIER_THRESHOLD: ten times 1.4826, which makes a MAD a standard deviation.
constexpr double kOutlier = 14.826;
constexpr double kNoSpread = 1e-9;

}  // namespace

double mean(const Sample& sample) {
  const auto n = static_cast<double>(sample.size());
  double sum = 0;
  for (const double x : sample) sum += x / n;
  double error = 0;
  for (const double x : sample) error += x - sum;
  return sum + error / n;
}

double harmonic_mean(const Sample& sample) {
  double sum = 0;
  for (const double x : sample) {
    if (x <= 0) return kNone;
    sum += 1 / x;
  }
  return static_cast<double>(sample.size()) / sum;
}

double median(const Sample& sample) {
  Sample sorted = sample;
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
  std::nth_element(sorted.begin(), middle, sorted.end());
  if (sorted.size() % 2 == 1) return *middle;
  const double below = *std::max_element(sorted.begin(), middle);
  return below + (*middle - below) / 2;
}

double standard_deviation(const Sample& sample) {
  if (sample.size() < 2) return 0;
  const double centre = mean(sample);
  double squares = 0;
  for (const double x : sample) squares += (x - centre) * (x - centre);
  return std::sqrt(squares / static_cast<double>(sample.size() - 1));
}

double coefficient_of_variation(const Sample& sample) {
  const double centre = mean(sample);
  if (sample.size() < 2 || centre == 0) return kNone;
  return standard_deviation(sample) / std::fabs(centre);
}

double median_absolute_deviation(const Sample& sample) {
  const double centre = median(sample);
  Sample distances;
  distances.reserve(sample.size());
  for (const double x : sample) distances.push_back(std::fabs(x - centre));
  return median(distances);
}

double percentile(const Sample& sample, double percent) {
  Sample sorted = sample;
  std::ranges::sort(sorted);
  const double position = percent / 100 * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(position);
  if (below + 1 >= sorted.size()) return sorted.back();
  const double rest = position - static_cast<double>(below);
  return sorted[below] + rest * (sorted[below + 1] - sorted[below]);
}

Outliers outliers(const Sample& sample) {
  Outliers out;
  if (sample.size() < 3) return out;  // no majority that another value could lie outside of
  const double centre = median(sample);
  const double spread = median_absolute_deviation(sample);
  if (spread <= kNoSpread * std::fabs(centre)) return out;
  for (size_t i = 0; i < sample.size(); ++i) {
    if (std::fabs(sample[i] - centre) / spread > kOutlier) out.indexes.push_back(i);
  }
  return out;
}

}  // namespace tally::statistics
