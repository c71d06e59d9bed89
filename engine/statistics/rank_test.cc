#include "engine/statistics/rank_test.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace tally::statistics {
namespace {

// How many of the C(n + m, n) orders of n and m values have each U: the coefficients of Gauss's
// binomial, the product over i <= n of (1 - q^(m + i)) / (1 - q^i). Whole numbers below 2^53 for n,
// m <= 20.
std::vector<double> orders_by_u(size_t n, size_t m) {
  std::vector<double> count(n * m + 1, 0.0);
  count[0] = 1;
  for (size_t i = 1; i <= n; ++i) {
    for (size_t u = count.size(); u-- > m + i;) count[u] -= count[u - m - i];
    for (size_t u = i; u < count.size(); ++u) count[u] += count[u - i];
  }
  return count;
}

double exact_p(double u, size_t n, size_t m) {
  const std::vector<double> count = orders_by_u(n, m);
  const double all = std::accumulate(count.begin(), count.end(), 0.0);
  const double smaller = std::min(u, static_cast<double>(n * m) - u);
  const auto last = static_cast<size_t>(std::ceil(smaller));
  const double tail =
      std::accumulate(count.begin(), count.begin() + static_cast<std::ptrdiff_t>(last) + 1, 0.0);
  return std::min(1.0, 2 * tail / all);
}

double normal_p(double u, const Sample& a, const Sample& b) {
  const auto n = static_cast<double>(a.size());
  const auto m = static_cast<double>(b.size());
  const double all = n + m;
  Sample pooled = a;
  pooled.insert(pooled.end(), b.begin(), b.end());
  std::ranges::sort(pooled);
  double ties = 0;
  for (size_t from = 0, to = 0; from < pooled.size(); from = to) {
    while (to < pooled.size() && pooled[to] == pooled[from]) ++to;
    const auto size = static_cast<double>(to - from);
    ties += size * size * size - size;
  }
  const double variance = n * m / 12 * (all + 1 - ties / (all * (all - 1)));
  if (variance <= 0) return 1;
  const double distance = std::max(0.0, std::fabs(u - n * m / 2) - 0.5);
  return std::min(1.0, std::erfc(distance / std::sqrt(2 * variance)));
}

}  // namespace

RankTest mann_whitney(const Sample& a, const Sample& b) {
  RankTest out;
  Sample sorted = b;
  std::ranges::sort(sorted);
  for (const double x : a) {
    const auto [first, last] = std::equal_range(sorted.begin(), sorted.end(), x);
    out.u += static_cast<double>(first - sorted.begin()) + 0.5 * static_cast<double>(last - first);
  }
  out.exact = a.size() <= kExactSamples && b.size() <= kExactSamples;
  out.p = out.exact ? exact_p(out.u, a.size(), b.size()) : normal_p(out.u, a, b);
  return out;
}

double smallest_p(size_t n) {
  const auto count = static_cast<double>(n);
  return std::min(1.0, 2 * std::exp(2 * std::lgamma(count + 1) - std::lgamma(2 * count + 1)));
}

size_t samples_needed(double level) {
  size_t n = 1;
  while (smallest_p(n) >= level) ++n;
  return n;
}

std::vector<double> holm(const std::vector<double>& p) {
  std::vector<size_t> order(p.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](size_t i, size_t j) { return p[i] < p[j]; });
  std::vector<double> adjusted(p.size());
  double largest = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    largest = std::max(largest, static_cast<double>(order.size() - i) * p[order[i]]);
    adjusted[order[i]] = std::min(1.0, largest);
  }
  return adjusted;
}

}  // namespace tally::statistics
