// Prints statistics of the samples on standard input, for tests/peer/statistics_parity.py.
//
// A line is a function's name and one or two samples: "mann_whitney 1 2 3 | 2 3 4". The answer is
// a line of numbers.
#include <cstdio>
#include <iostream>
#include <sstream>
#include <string>

#include "engine/statistics/descriptive.h"
#include "engine/statistics/intervals.h"
#include "engine/statistics/rank_test.h"

using namespace tally::statistics;

namespace {

std::vector<double> answer(const std::string& name, const Sample& a, const Sample& b) {
  if (name == "describe") {
    return {mean(a),
            median(a),
            standard_deviation(a),
            coefficient_of_variation(a),
            median_absolute_deviation(a),
            percentile(a, 5),
            percentile(a, 95),
            harmonic_mean(a)};
  }
  if (name == "median_interval") {
    const MedianInterval found = median_interval(a);
    return {found.interval.low, found.interval.high, found.confidence};
  }
  if (name == "mean_interval") {
    const Interval found = mean_interval(a, 1);
    return {found.low, found.high};
  }
  if (name == "median_ratio_interval") {
    const Interval found = median_ratio_interval(a, b, 1);
    return {found.low, found.high};
  }
  if (name == "mann_whitney") {
    const RankTest found = mann_whitney(a, b);
    return {found.u, found.p};
  }
  if (name == "holm") return holm(a);
  return {};
}

}  // namespace

int main() {
  std::string line;
  while (std::getline(std::cin, line)) {
    std::istringstream words(line);
    std::string name;
    std::string word;
    words >> name;
    Sample samples[2];
    int at = 0;
    while (words >> word) {
      if (word == "|") {
        at = 1;
      } else {
        samples[at].push_back(std::stod(word));
      }
    }
    for (const double x : answer(name, samples[0], samples[1])) std::printf("%.17g ", x);
    std::printf("\n");
  }
}
