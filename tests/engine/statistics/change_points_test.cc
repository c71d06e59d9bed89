// Change points on simulated series. The seeds are fixed, so that the counts are, too.
#include <doctest/doctest.h>

#include <cmath>
#include <random>

#include "engine/statistics/change_points.h"

using tally::statistics::change_points;
using tally::statistics::Sample;

namespace {

Sample series(std::mt19937_64& random, size_t n, size_t step_at, double step, double noise) {
  std::normal_distribution<double> normal(0, noise);
  Sample out;
  for (size_t i = 0; i < n; ++i) out.push_back(100 + (i >= step_at ? step : 0) + normal(random));
  return out;
}

}  // namespace

TEST_CASE("change points: exact steps, and series without one") {
  CHECK(change_points({}).empty());
  CHECK(change_points({1, 1, 1, 9, 9}).empty());  // too few on one side
  CHECK(change_points({1, 1, 1, 9, 9, 9}) == std::vector<size_t>{3});
  CHECK(change_points({5, 5, 5, 5, 5, 5, 5, 5}).empty());
  CHECK(change_points({1, 1, 1, 1, 9, 1, 1, 1, 1}).empty());  // one outlier
  CHECK(change_points({1, 1, 1, 1, 5, 5, 5, 5, 2, 2, 2, 2}) == std::vector<size_t>{4, 8});
}

TEST_CASE("change points: noise alone is rarely a change, a step of five deviations is found") {
  std::mt19937_64 random(1);
  int wrong = 0;
  int found = 0;
  constexpr int kSeries = 500;
  for (int i = 0; i < kSeries; ++i) {
    wrong += change_points(series(random, 40, 40, 0, 1)).empty() ? 0 : 1;
    const std::vector<size_t> points = change_points(series(random, 40, 23, 5, 1));
    found += points.size() == 1 && points[0] >= 22 && points[0] <= 24 ? 1 : 0;
  }
  INFO(wrong << " wrong, " << found << " found of " << kSeries);
  CHECK(wrong <= kSeries / 20);
  CHECK(found >= kSeries * 19 / 20);
}
