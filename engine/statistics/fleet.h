// Decides which of many equal machines are as fast as they should be, with as few repeats as that
// takes. docs/fleet.md has the formulas, e_process.h their source.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "engine/statistics/descriptive.h"
#include "engine/statistics/intervals.h"

namespace tally::statistics {

struct FleetRule {
  double at_least = 0.95;   // of the baseline
  double of_median = 0.97;  // of the fleet's median
  // The probability that a fleet has a false accusation, and that a member below its limit passes.
  double wrong = 0.01;
};

// The fewest members with a median against which each of them is judged.
constexpr size_t kFewestInFleet = 4;

enum class RateVerdict { undecided, passes, slow };

// A rate against a reference, as rate / reference - 1, with its confidence sequence at 95 %.
struct Deviation {
  double change = 0;
  Interval interval;  // a side may be infinite
};

// One rate that all members have, as logarithms of which a higher one is better: a sample a member,
// empty without any repeat that counts.
struct FleetRate {
  std::vector<Sample> logs;
  std::optional<Interval> baseline;  // of the accepted value, as logarithms

  // How many hypotheses it tests: members that have a value, each against one or two references.
  size_t hypotheses() const;
};

// The verdict of each member. `hypotheses`: those of all rates of the fleet (Bonferroni).
std::vector<RateVerdict> judge_rate(const FleetRate& rate, const FleetRule& rule,
                                    size_t hypotheses);

struct RateDeviations {
  std::optional<Deviation> of_median, of_baseline;
};
// For people. Empty of a member without a value; of_median without enough members.
std::vector<RateDeviations> deviations(const FleetRate& rate);

// The number of repeats after which a member is judged: `first`, then a third more each time.
// Returns the round, from 0, in which repeat number `repeat` (from 0) is made.
int fleet_round(int repeat, int first);

}  // namespace tally::statistics
