// The verdicts of comparisons, and how often they are wrong, simulated.
#include "engine/statistics/comparison.h"

#include <doctest/doctest.h>

#include "tests/engine/statistics/distributions.h"

using namespace tally::statistics;

namespace {

Sample noisy(double centre, double noise, size_t n, Random& random) {
  Sample sample;
  for (size_t i = 0; i < n; ++i) sample.push_back(centre * (1 + noise * simulated::normal(random)));
  return sample;
}

Comparison decided(const Sample& base, const Sample& other, bool lower_is_better,
                   double threshold = 0.02) {
  std::vector<Comparison> one = {compare(base, other, 1)};
  decide(one, {lower_is_better}, threshold);
  return one.front();
}

constexpr int kResamplesHere = 1000;

}  // namespace

TEST_CASE("verdicts") {
  const Sample base = {100, 101, 99, 100.5, 99.5};
  const Sample slower = {110, 111, 109, 110.5, 109.5};
  CHECK(decided(base, slower, true).verdict == Verdict::regressed);
  CHECK(decided(base, slower, false).verdict == Verdict::improved);
  CHECK(decided(slower, base, true).verdict == Verdict::improved);
  CHECK(decided(slower, base, false).verdict == Verdict::regressed);
  CHECK(decided(base, base, true).verdict == Verdict::same);
  CHECK(decided(base, slower, true).change == doctest::Approx(0.1));
  // The interval crosses the threshold.
  CHECK(decided(base, slower, true, 0.1).verdict == Verdict::unclear);
  CHECK(decided(base, slower, true, 0.2).verdict == Verdict::same);
}

TEST_CASE("fewer than four values a side decide nothing") {
  const Comparison few = decided({100, 100, 100}, {200, 200, 200}, true);
  CHECK(few.verdict == Verdict::unclear);
  CHECK_FALSE(few.interval);
  CHECK(few.needed == 4);
  CHECK(decided({100, 100, 100, 100}, {200, 200, 200}, true).verdict == Verdict::unclear);
  CHECK(decided({}, {1, 2, 3, 4}, true).verdict == Verdict::unclear);
}

TEST_CASE("there is no ratio of values that are not positive") {
  const Comparison none = decided({0, 1, 1, 1, 1}, {1, 1, 1, 1, 1}, true);
  CHECK(none.verdict == Verdict::unclear);
  CHECK_FALSE(none.positive);
}

TEST_CASE("Holm asks for more values where there are more rows") {
  std::vector<Comparison> rows(10, compare({100, 101, 102, 103}, {120, 121, 122, 123}, 1));
  decide(rows, std::vector<bool>(10, true), 0.02);
  CHECK(rows[0].adjusted_p == doctest::Approx(10 * 2.0 / 70));
  CHECK(rows[0].verdict == Verdict::unclear);
  CHECK(rows[0].needed == 6);  // 2 / C(10, 5) = 0.0079, 2 / C(12, 6) = 0.0022 < 0.005
}

TEST_CASE("rows with too few values need what Holm will ask for, too") {
  std::vector<Comparison> rows(2, compare({100, 101, 102}, {120, 121, 122}, 1));
  decide(rows, {true, true}, 0.02);
  CHECK(rows[0].needed == 5);  // 2 / C(8, 4) = 0.029 > 0.05 / 2, 2 / C(10, 5) = 0.0079
  // Beside a row that has enough, and one that can never have a ratio.
  rows = {compare({100, 101, 102}, {120, 121, 122}, 1),
          compare({100, 101, 102, 103}, {120, 121, 122, 123}, 1), compare({0, 1}, {1, 1}, 1)};
  decide(rows, {true, true, true}, 0.02);
  CHECK(rows[0].needed == 5);
  CHECK(rows[2].needed == 0);
  rows.front() = compare({100, 101, 102}, {120, 121, 122}, 1);
  rows.resize(1);
  decide(rows, {true}, 0.02);
  CHECK(rows[0].needed == 4);
}

TEST_CASE("identical data: hardly any regression is claimed") {
  constexpr int kFamilies = 100;
  constexpr size_t kRows = 20;
  Random random(27);
  int before = 0;
  int after = 0;
  for (int family = 0; family < kFamilies; ++family) {
    std::vector<Comparison> rows;
    for (size_t i = 0; i < kRows; ++i) {
      const Sample a = noisy(100, 0.01, 10, random);
      const Sample b = noisy(100, 0.01, 10, random);
      rows.push_back(compare(a, b, random.next(), kResamplesHere));
      if (rows.back().interval->low > 0 && rows.back().p < kLevel) ++before;
    }
    decide(rows, std::vector<bool>(kRows, true), 0);  // the strictest threshold
    for (const Comparison& row : rows) after += row.verdict == Verdict::regressed ? 1 : 0;
  }
  CHECK(before < 0.05 * kFamilies * kRows);
  CHECK(before > 0);  // of 2,000, 2.5 % on one side are expected by chance
  CHECK(after < 0.01 * kFamilies * kRows);
}

TEST_CASE("a slowdown of 3 % at 1 % noise is found with 10 repeats") {
  constexpr int kTrials = 1000;
  Random random(3);
  int found = 0;
  int found_at_default = 0;
  for (int i = 0; i < kTrials; ++i) {
    const Sample a = noisy(100, 0.01, 10, random);
    const Sample b = noisy(103, 0.01, 10, random);
    std::vector<Comparison> one = {compare(a, b, random.next(), kResamplesHere)};
    decide(one, {true}, 0.005);
    found += one[0].verdict == Verdict::regressed ? 1 : 0;
    decide(one, {true}, 0.02);
    found_at_default += one[0].verdict == Verdict::regressed ? 1 : 0;
  }
  CHECK(found > 0.95 * kTrials);
  // The whole interval has to be beyond the threshold: at 2 % a change of 3 % is too near. The
  // documentation says so.
  MESSAGE("at a threshold of 2 %: ", found_at_default, " of ", kTrials);
  CHECK(found_at_default < 0.6 * kTrials);
}
