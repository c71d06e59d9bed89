// The table of statistics that workflows name: what each is of one sample, by NumPy 1.24 and SciPy.
#include "engine/statistics/named.h"

#include <doctest/doctest.h>

#include <map>
#include <set>
#include <string>

using namespace tally::statistics;

TEST_CASE("each statistic of a sample") {
  const Sample sample = {200, 207, 204, 201, 208, 205, 202, 209};
  const std::map<std::string, double> expected = {
      {"median", 204.5},        {"mean", 204.5}, {"min", 200},     {"max", 209},
      {"harmonic", 204.452316}, {"mad", 3},      {"cv", 0.016323}, {"p05", 200.35},
      {"p95", 208.65},          {"ci_low", 200}, {"ci_high", 209}, {"n", 8},
      {"outliers", 0}};
  for (const NamedStatistic& one : named_statistics()) {
    REQUIRE_MESSAGE(expected.count(one.word) == 1, one.word);
    CHECK_MESSAGE(one.of(sample) == doctest::Approx(expected.at(one.word)), one.word);
  }
}

TEST_CASE("words are there once, for columns, for ends of names, or for both") {
  std::set<std::string> columns, suffixes;
  for (const NamedStatistic* one : column_statistics()) CHECK(columns.insert(one->word).second);
  for (const NamedStatistic* one : suffix_statistics()) CHECK(suffixes.insert(one->word).second);
  for (const NamedStatistic& one : named_statistics())
    CHECK(columns.count(one.word) + suffixes.count(one.word) >= 1);
  CHECK(columns.count("median") + suffixes.count("median") == 2);
  // JUBE's statistics of the matches in one output have these ends.
  for (const char* word : {"first", "last", "cnt", "min", "max", "sum", "sum2", "avg", "std"})
    CHECK(suffixes.count(word) == 0);
}

TEST_CASE("an empty sample has a number of values alone") {
  for (const NamedStatistic& one : named_statistics())
    CHECK(one.of_nothing == (std::string(one.word) == "n"));
}
