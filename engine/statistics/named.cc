#include "engine/statistics/named.h"

#include <algorithm>
#include <array>
#include <string>

namespace tally::statistics {
namespace {

using Kind = NamedStatistic::Kind;
using Place = NamedStatistic::Place;

MedianInterval interval_of_median(const Sample& sample, uint64_t /*seed*/) {
  return median_interval(sample);
}

// Fewer values than an interval of the median needs have its range.
MedianInterval interval_of_mean(const Sample& sample, uint64_t seed) {
  if (sample.size() < kFewestForMedian) return median_interval(sample);
  return {mean_interval(sample, seed), kConfidence, false};
}

// cv: standard deviation / |mean|. p05, p95: percentiles. ci_low, ci_high: the 95 % confidence
// interval of the median. n: how many repeats have a value. outliers: how many values are outliers.
constexpr std::array kNamed = {
    NamedStatistic{"median", "median", Place::both, median, Kind::value, interval_of_median},
    NamedStatistic{"mean", "mean", Place::column, mean, Kind::average, interval_of_mean},
    NamedStatistic{"min", "smallest", Place::column,
                   [](const Sample& sample) { return *std::ranges::min_element(sample); }},
    NamedStatistic{"max", "largest", Place::column,
                   [](const Sample& sample) { return *std::ranges::max_element(sample); }},
    NamedStatistic{"harmonic", "harmonic mean", Place::column, harmonic_mean, Kind::average},
    NamedStatistic{"mad", "median absolute deviation", Place::suffix, median_absolute_deviation},
    NamedStatistic{"cv", "coefficient of variation", Place::suffix, coefficient_of_variation,
                   Kind::ratio},
    NamedStatistic{"p05", "5th percentile", Place::suffix,
                   [](const Sample& sample) { return percentile(sample, 5); }},
    NamedStatistic{"p95", "95th percentile", Place::suffix,
                   [](const Sample& sample) { return percentile(sample, 95); }},
    NamedStatistic{"ci_low", "lower bound of the 95 % interval", Place::suffix,
                   [](const Sample& sample) { return median_interval(sample).interval.low; }},
    NamedStatistic{"ci_high", "upper bound of the 95 % interval", Place::suffix,
                   [](const Sample& sample) { return median_interval(sample).interval.high; }},
    NamedStatistic{"n", "number", Place::suffix,
                   [](const Sample& sample) { return static_cast<double>(sample.size()); },
                   Kind::count, nullptr, true},
    NamedStatistic{
        "outliers", "number of outliers", Place::suffix,
        [](const Sample& sample) { return static_cast<double>(outliers(sample).indexes.size()); },
        Kind::count},
};

std::vector<const NamedStatistic*> those_of(NamedStatistic::Place place) {
  std::vector<const NamedStatistic*> found;
  for (const NamedStatistic& one : kNamed)
    if (one.place == place || one.place == Place::both) found.push_back(&one);
  return found;
}

std::string choices(const std::vector<const NamedStatistic*>& all) {
  std::string words;
  for (const NamedStatistic* one : all) words.append(words.empty() ? "" : "|").append(one->word);
  return words;
}

}  // namespace

std::span<const NamedStatistic> named_statistics() {
  return kNamed;
}

const std::vector<const NamedStatistic*>& column_statistics() {
  static const std::vector<const NamedStatistic*> all = those_of(Place::column);
  return all;
}

const std::vector<const NamedStatistic*>& suffix_statistics() {
  static const std::vector<const NamedStatistic*> all = those_of(Place::suffix);
  return all;
}

const char* column_choices() {
  static const std::string words = choices(column_statistics());
  return words.c_str();
}

const char* suffix_choices() {
  static const std::string words = choices(suffix_statistics());
  return words.c_str();
}

}  // namespace tally::statistics
