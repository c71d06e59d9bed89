#include "engine/statistics/named.h"

#include <array>
#include <string>

#include "engine/statistics/intervals.h"

namespace tally::statistics {
namespace {

using Kind = NamedStatistic::Kind;

constexpr std::array kNamed = {
    NamedStatistic{"median", median},
    NamedStatistic{"mad", median_absolute_deviation},
    NamedStatistic{"cv", coefficient_of_variation, Kind::ratio},
    NamedStatistic{"p05", [](const Sample& sample) { return percentile(sample, 5); }},
    NamedStatistic{"p95", [](const Sample& sample) { return percentile(sample, 95); }},
    NamedStatistic{"ci_low",
                   [](const Sample& sample) { return median_interval(sample).interval.low; }},
    NamedStatistic{"ci_high",
                   [](const Sample& sample) { return median_interval(sample).interval.high; }},
    NamedStatistic{"n", [](const Sample& sample) { return static_cast<double>(sample.size()); },
                   Kind::count, true},
    NamedStatistic{
        "outliers",
        [](const Sample& sample) { return static_cast<double>(outliers(sample).indexes.size()); },
        Kind::count},
};

}  // namespace

std::span<const NamedStatistic> named_statistics() {
  return kNamed;
}

const char* named_choices() {
  static const std::string choices = [] {
    std::string words;
    for (const NamedStatistic& one : kNamed)
      words.append(words.empty() ? "" : "|").append(one.word);
    return words;
  }();
  return choices.c_str();
}

}  // namespace tally::statistics
