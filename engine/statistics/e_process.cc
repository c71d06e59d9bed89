#include "engine/statistics/e_process.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace tally::statistics {
namespace {

using Weights = std::array<double, 5>;  // of the bets; their sum is 1
constexpr Weights kBets = {0.125, 0.25, 0.5, 0.75, 1};
constexpr Weights kAlike = {0.2, 0.2, 0.2, 0.2, 0.2};
constexpr Weights kBold = {0.05, 0.05, 0.1, 0.2, 0.6};
constexpr double kMostGain = 6;

// `sign`: 1 for above, -1 for below.
double evidence(const Sample& values, double limit, double unit, double sign,
                const Weights& weights = kAlike) {
  double sum = 0;
  for (size_t i = 0; i < kBets.size(); ++i) {
    double product = weights[i];
    for (const double value : values)
      product *= 1 + kBets[i] * std::clamp(sign * (value - limit) / unit, -1.0, kMostGain);
    sum += product;
  }
  return sum;
}

// The bound of one side. Evidence against a limit falls as the limit comes nearer to the values.
double bound(const Sample& values, double unit, double error, double sign) {
  const double centre = median(values);
  // Beyond this distance all gains are at their bounds.
  const auto [least, most] = std::ranges::minmax_element(values);
  double far = centre - sign * (*most - *least + (kMostGain + 1) * unit);
  if (evidence(values, far, unit, sign) < 1 / error)
    return -sign * std::numeric_limits<double>::infinity();
  double near = centre + sign * (*most - *least + (kMostGain + 1) * unit);
  constexpr int kSteps = 60;
  for (int i = 0; i < kSteps; ++i) {
    const double middle = (far + near) / 2;
    (evidence(values, middle, unit, sign) >= 1 / error ? far : near) = middle;
  }
  return far;
}

}  // namespace

double evidence_above(const Sample& values, double limit, double unit) {
  return evidence(values, limit, unit, 1);
}

double evidence_below(const Sample& values, double limit, double unit) {
  return evidence(values, limit, unit, -1);
}

double bold_evidence_above(const Sample& values, double limit, double unit) {
  constexpr double kShare = 0.75;
  return evidence(values, limit, kShare * unit, 1, kBold);
}

double noise_scale(const std::vector<Sample>& samples) {
  Sample differences;
  for (const Sample& sample : samples)
    for (size_t i = 1; i < sample.size(); ++i)
      differences.push_back(std::fabs(sample[i] - sample[i - 1]));
  if (differences.empty()) return 0;
  constexpr double kNormalMedian = 0.6744897501960817;  // of |z|
  return median(differences) / (kNormalMedian * std::sqrt(2.0));
}

double gain_unit(double scale) {
  constexpr double kLeast = 0.001;
  return std::max(2 * scale, kLeast);
}

Interval confidence_sequence(const Sample& values, double unit, double confidence) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (values.empty()) return {-kInfinity, kInfinity};
  const double error = (1 - confidence) / 2;
  return {bound(values, unit, error, 1), bound(values, unit, error, -1)};
}

}  // namespace tally::statistics
