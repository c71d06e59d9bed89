#include "engine/statistics/change_points.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <queue>

namespace tally::statistics {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr size_t kMostSegments = 20;

// The sum of the distances from the median of values that are added one by one.
class Distances {
 public:
  void add(double value) {
    if (low_.empty() || value <= low_.top()) {
      low_.push(value);
      low_sum_ += value;
    } else {
      high_.push(value);
      high_sum_ += value;
    }
    if (low_.size() > high_.size() + 1) {
      high_.push(low_.top());
      high_sum_ += low_.top();
      low_sum_ -= low_.top();
      low_.pop();
    } else if (high_.size() > low_.size()) {
      low_.push(high_.top());
      low_sum_ += high_.top();
      high_sum_ -= high_.top();
      high_.pop();
    }
  }
  double sum() const {
    const double middle = low_.top();
    const auto below = static_cast<double>(low_.size());
    const auto above = static_cast<double>(high_.size());
    return std::max(0.0, middle * below - low_sum_ + high_sum_ - middle * above);
  }

 private:
  std::priority_queue<double> low_;  // the lower half; its top is the median
  std::priority_queue<double, std::vector<double>, std::greater<>> high_;
  double low_sum_ = 0, high_sum_ = 0;
};

// cost[i][j]: of the segment from i to j, both included.
std::vector<std::vector<double>> segment_costs(const Sample& series) {
  const size_t n = series.size();
  std::vector<std::vector<double>> cost(n, std::vector<double>(n, kNever));
  for (size_t i = 0; i < n; ++i) {
    Distances distances;
    for (size_t j = i; j < n; ++j) {
      distances.add(series[j]);
      if (j - i + 1 >= kFewestInSegment) cost[i][j] = distances.sum();
    }
  }
  return cost;
}

}  // namespace

std::vector<size_t> change_points(const Sample& series) {
  const size_t n = series.size();
  if (n < 2 * kFewestInSegment) return {};
  const std::vector<std::vector<double>> cost = segment_costs(series);
  const double penalty = 4 * std::log(static_cast<double>(n)) / static_cast<double>(n);
  // Values that are equal but for rounding are one level.
  const double floor = 1e-6 * std::max(std::fabs(median(series)), 1e-300);
  const size_t most = std::min(kMostSegments, n / kFewestInSegment);
  // best[k][j]: of the first j + 1 values in k + 1 segments. begin[k][j]: where the last one
  // begins.
  std::vector<std::vector<double>> best(most, std::vector<double>(n, kNever));
  std::vector<std::vector<size_t>> begin(most, std::vector<size_t>(n, 0));
  best[0] = cost[0];
  double lowest = kNever;
  size_t chosen = 0;
  for (size_t k = 0; k < most; ++k) {
    for (size_t j = 0; k > 0 && j < n; ++j) {
      for (size_t i = 1; i <= j; ++i) {
        const double sum = best[k - 1][i - 1] + cost[i][j];
        if (sum >= best[k][j]) continue;
        best[k][j] = sum;
        begin[k][j] = i;
      }
    }
    const double spread = best[k][n - 1] / static_cast<double>(n);
    const double value = std::log(spread + floor) + penalty * static_cast<double>(k + 1);
    if (value >= lowest) continue;
    lowest = value;
    chosen = k;
  }
  std::vector<size_t> points;
  for (size_t k = chosen, j = n - 1; k > 0; --k) {
    points.push_back(begin[k][j]);
    j = begin[k][j] - 1;
  }
  std::ranges::reverse(points);
  return points;
}

}  // namespace tally::statistics
