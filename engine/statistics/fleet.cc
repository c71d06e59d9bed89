#include "engine/statistics/fleet.h"

#include <algorithm>
#include <cmath>

#include "engine/statistics/e_process.h"

namespace tally::statistics {
namespace {

size_t count_with_values(const FleetRate& rate) {
  return static_cast<size_t>(
      std::ranges::count_if(rate.logs, [](const Sample& logs) { return !logs.empty(); }));
}

// The median over members of the members' medians.
std::optional<double> fleet_median(const FleetRate& rate) {
  Sample medians;
  for (const Sample& logs : rate.logs)
    if (!logs.empty()) medians.push_back(median(logs));
  if (medians.size() < kFewestInFleet) return {};
  return median(medians);
}

// A member that is noisier than the fleet has its own unit.
double unit_of(const Sample& logs, double fleet_scale) {
  return gain_unit(std::max(fleet_scale, noise_scale({logs})));
}

Deviation deviation(const Sample& logs, double reference, double unit) {
  const Interval interval = confidence_sequence(logs, unit);
  return {std::exp(median(logs) - reference) - 1,
          {std::exp(interval.low - reference) - 1, std::exp(interval.high - reference) - 1}};
}

}  // namespace

size_t FleetRate::hypotheses() const {
  const size_t members = count_with_values(*this);
  return members * ((members >= kFewestInFleet ? 1U : 0U) + (baseline ? 1U : 0U));
}

std::vector<RateVerdict> judge_rate(const FleetRate& rate, const FleetRule& rule,
                                    size_t hypotheses) {
  std::vector<RateVerdict> verdicts(rate.logs.size(), RateVerdict::undecided);
  const std::optional<double> centre = fleet_median(rate);
  if (!centre && !rate.baseline) return verdicts;
  const double scale = noise_scale(rate.logs);
  const double to_accuse = static_cast<double>(std::max<size_t>(hypotheses, 1)) / rule.wrong;
  const double to_pass = 1 / rule.wrong;
  for (size_t i = 0; i < rate.logs.size(); ++i) {
    const Sample& logs = rate.logs[i];
    if (logs.empty()) continue;
    const double unit = unit_of(logs, scale);
    bool slow = false, passes = true;
    const auto test = [&](double lowest, double highest, double limit) {
      slow = slow || evidence_below(logs, lowest + std::log(limit), unit) >= to_accuse;
      passes = passes && bold_evidence_above(logs, highest + std::log(limit), unit) >= to_pass;
    };
    if (centre) test(*centre, *centre, rule.of_median);
    if (rate.baseline) test(rate.baseline->low, rate.baseline->high, rule.at_least);
    if (slow) {
      verdicts[i] = RateVerdict::slow;
    } else if (passes) {
      verdicts[i] = RateVerdict::passes;
    }
  }
  return verdicts;
}

std::vector<RateDeviations> deviations(const FleetRate& rate) {
  std::vector<RateDeviations> all(rate.logs.size());
  const std::optional<double> centre = fleet_median(rate);
  const double scale = noise_scale(rate.logs);
  for (size_t i = 0; i < rate.logs.size(); ++i) {
    const Sample& logs = rate.logs[i];
    if (logs.empty()) continue;
    const double unit = unit_of(logs, scale);
    if (centre) all[i].of_median = deviation(logs, *centre, unit);
    if (rate.baseline)
      all[i].of_baseline = deviation(logs, (rate.baseline->low + rate.baseline->high) / 2, unit);
  }
  return all;
}

int fleet_round(int repeat, int first) {
  int round = 0;
  for (int end = std::max(first, 1); repeat >= end; end += std::max(end / 3, 1)) ++round;
  return round;
}

}  // namespace tally::statistics
