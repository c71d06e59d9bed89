// Statistics of small samples, by values that can be counted by hand or that a publication gives.
#include "engine/statistics/descriptive.h"

#include <doctest/doctest.h>

#include <cmath>

#include "engine/statistics/intervals.h"
#include "engine/statistics/rank_test.h"

using namespace tally::statistics;

TEST_CASE("sums keep the digits of values that differ little") {
  // NIST's StRD, data set NumAcc4: mean 10000000.2 and standard deviation 0.1.
  Sample sample = {10000000.2};
  for (int i = 0; i < 500; ++i) {
    sample.push_back(10000000.1);
    sample.push_back(10000000.3);
  }
  CHECK(mean(sample) == doctest::Approx(10000000.2).epsilon(1e-15));
  CHECK(standard_deviation(sample) == doctest::Approx(0.1).epsilon(1e-8));
}

TEST_CASE("one value") {
  const Sample one = {3.5};
  CHECK(mean(one) == 3.5);
  CHECK(median(one) == 3.5);
  CHECK(standard_deviation(one) == 0);
  CHECK(std::isnan(coefficient_of_variation(one)));
  CHECK(percentile(one, 95) == 3.5);
  CHECK(median_interval(one).is_range);
  CHECK(mean_interval(one, 1).low == 3.5);
}

TEST_CASE("the harmonic mean is for positive rates") {
  CHECK(harmonic_mean({40, 60}) == doctest::Approx(48));
  CHECK(std::isnan(harmonic_mean({1, 0})));
  CHECK(std::isnan(harmonic_mean({1, -2})));
}

TEST_CASE("outliers by hyperfine's rule") {
  // Median 10.75, MAD 0.5: the rule's upper bound is 18.163.
  CHECK(outliers({10, 10, 10.5, 11, 11, 18.1}).indexes.empty());
  CHECK(outliers({10, 10, 10.5, 11, 11, 18.2}).indexes == std::vector<size_t>{5});
  CHECK_FALSE(outliers({10, 10, 10.5, 11, 11, 18.2}).first());
  const Outliers slow = outliers({30, 10, 11, 10, 11, 10.5});
  CHECK(slow.first());
  CHECK(slow.indexes.size() == 1);
  CHECK(outliers({5, 5, 5, 5, 5.000001}).indexes.empty());  // no spread to compare with
  CHECK(outliers({1, 100}).indexes.empty());
}

TEST_CASE("ranks of the median's interval") {
  // Hahn and Meeker, Statistical Intervals: n = 6 has 96.9 %, n = 10 has 97.9 % at the second rank.
  CHECK(median_rank(5) == 0);
  CHECK(median_rank(6) == 1);
  CHECK(median_rank(8) == 1);
  CHECK(median_rank(9) == 2);
  CHECK(median_rank(10) == 2);
  CHECK(median_rank(20) == 6);
  CHECK(median_rank(50) == 18);
  CHECK(rank_confidence(6, 1) == doctest::Approx(0.96875));
  CHECK(rank_confidence(10, 2) == doctest::Approx(0.978515625));
  CHECK(median_rank(1001) == 469);  // floor((1001 - 1.96 * sqrt(1001)) / 2)
  const MedianInterval six = median_interval({3, 1, 2, 6, 5, 4});
  CHECK_FALSE(six.is_range);
  CHECK(six.interval.low == 1);
  CHECK(six.interval.high == 6);
  const MedianInterval five = median_interval({3, 1, 2, 5, 4});
  CHECK(five.is_range);
  CHECK(five.confidence == doctest::Approx(0.9375));
}

TEST_CASE("a bootstrap gives the same bounds for the same seed") {
  const Sample sample = {1, 2, 3, 4, 5, 6, 7};
  CHECK(mean_interval(sample, 7).low == mean_interval(sample, 7).low);
  CHECK(mean_interval(sample, 7).low == doctest::Approx(2.571).epsilon(0.05));
  const Interval same = median_ratio_interval({2, 2, 2, 2}, {4, 4, 4, 4}, 1);
  CHECK(same.low == 2);
  CHECK(same.high == 2);
}

TEST_CASE("the smallest p that samples can have") {
  CHECK(smallest_p(3) == doctest::Approx(0.1));
  CHECK(smallest_p(4) == doctest::Approx(2.0 / 70));
  CHECK(smallest_p(5) == doctest::Approx(2.0 / 252));
  CHECK(samples_needed(0.05) == 4);
  CHECK(samples_needed(0.05 / 20) == 6);  // 2 / C(12, 6) = 0.00216
  CHECK(mann_whitney({1, 2, 3, 4}, {5, 6, 7, 8}).p == doctest::Approx(2.0 / 70));
  CHECK(mann_whitney({1, 1, 1}, {1, 1, 1}).p == 1);
}

TEST_CASE("Holm's adjustment") {
  // Holm 1979: the smallest of three counts three times, the next twice.
  const std::vector<double> adjusted = holm({0.04, 0.01, 0.02});
  CHECK(adjusted[1] == doctest::Approx(0.03));
  CHECK(adjusted[2] == doctest::Approx(0.04));
  CHECK(adjusted[0] == doctest::Approx(0.04));  // not below an earlier one
  CHECK(holm({}).empty());
}
