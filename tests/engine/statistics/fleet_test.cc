// How often `tally fleet` is wrong, and what it costs, simulated: fleets of 500 nodes, whose healthy
// ones differ a little from each other for good, as chips do.
//   fleet_test                    200 fleets of each kind of noise
//   TALLY_FLEETS=1000 fleet_test  what docs/fleet.md has
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "engine/statistics/e_process.h"
#include "engine/statistics/fleet.h"
#include "tests/engine/statistics/distributions.h"

using namespace tally::statistics;

namespace {

constexpr size_t kNodes = 500;
constexpr int kFirst = 3, kMost = 32, kFixedPlan = 20;  // as workflows/fleet.yaml has them
// Of each kind so many nodes of a fleet are planted.
constexpr size_t kPlanted = 3;

struct Noise {
  std::string name;
  // The logarithm of one repeat's rate on a node, without its level.
  std::function<double(Random&, size_t node)> draw;
};

std::vector<Noise> noises() {
  const auto plain = [](double scale) {
    return [scale](Random& random, size_t) { return scale * simulated::normal(random); };
  };
  const auto outliers = [](Random& random, size_t) {
    const double slow = random.uniform() < 0.02 ? 0.05 * std::log(1 - random.uniform()) : 0;
    return 0.005 * simulated::normal(random) + slow;
  };
  // Student's t with 3 degrees of freedom.
  const auto heavy = [](Random& random, size_t) {
    double squares = 0;
    for (int i = 0; i < 3; ++i) squares += std::pow(simulated::normal(random), 2);
    return 0.004 * simulated::normal(random) / std::sqrt(squares / 3);
  };
  // Every seventh node is three times as noisy as the others, planted ones too.
  const auto uneven = [](Random& random, size_t node) {
    return (node % 7 == 0 ? 0.012 : 0.004) * simulated::normal(random);
  };
  return {{"0.3 %", plain(0.003)},
          {"0.5 %", plain(0.005)},
          {"0.5 %, 2 % slow outliers", outliers},
          {"heavy tails", heavy},
          {"uneven nodes", uneven}};
}

struct Count {
  size_t fleets = 0, accused_wrongly = 0, found5 = 0, found2 = 0, passed_at_limit = 0,
         accused_at_limit = 0, undecided = 0, healthy = 0, repeats = 0;
};

// Healthy nodes, kPlanted 5 % slower, kPlanted 2 % slower, and kPlanted at the limit, which is the hardest case
// for both errors.
void add_fleet(const Noise& noise, const FleetRule& rule, Random& random, Count* count) {
  std::vector<double> level(kNodes);
  for (size_t i = 0; i < kNodes; ++i) level[i] = 0.003 * simulated::normal(random);
  for (size_t i = 0; i < kPlanted; ++i) {
    level[i] = std::log(0.95);
    level[kPlanted + i] = std::log(0.98);
    level[2 * kPlanted + i] = std::log(rule.of_median);
  }
  FleetRate rate;
  rate.logs.resize(kNodes);
  std::vector<RateVerdict> verdicts(kNodes, RateVerdict::undecided);
  for (int repeat = 0; repeat < kMost; ++repeat) {
    for (size_t i = 0; i < kNodes; ++i)
      if (verdicts[i] == RateVerdict::undecided) {
        rate.logs[i].push_back(level[i] + noise.draw(random, i));
        ++count->repeats;
      }
    if (fleet_round(repeat, kFirst) == fleet_round(repeat + 1, kFirst) && repeat + 1 < kMost)
      continue;
    const std::vector<RateVerdict> now = judge_rate(rate, rule, rate.hypotheses());
    for (size_t i = 0; i < kNodes; ++i)
      if (verdicts[i] == RateVerdict::undecided) verdicts[i] = now[i];
  }
  bool accused = false;
  for (size_t i = 0; i < kNodes; ++i) {
    const bool slow = verdicts[i] == RateVerdict::slow;
    const bool at_limit = i >= 2 * kPlanted && i < 3 * kPlanted;
    if (at_limit) {
      count->accused_at_limit += slow ? 1 : 0;
      count->passed_at_limit += verdicts[i] == RateVerdict::passes ? 1 : 0;
    }
    if (i < kPlanted) count->found5 += slow ? 1 : 0;
    // Above the limit, a node that is 2 % slower passes.
    const bool two_is_slow = rule.of_median > 0.98;
    if (i >= kPlanted && i < 2 * kPlanted)
      count->found2 += verdicts[i] == (two_is_slow ? RateVerdict::slow : RateVerdict::passes);
    const bool is_slow = level[i] < std::log(rule.of_median);
    accused = accused || (slow && !is_slow);
    if (i < 3 * kPlanted) continue;
    ++count->healthy;
    count->undecided += verdicts[i] == RateVerdict::undecided ? 1 : 0;
  }
  count->accused_wrongly += accused ? 1 : 0;
  ++count->fleets;
}

// The smallest k with P(B > k) < 0.001, B binomial with n and p.
size_t binomial_bound(size_t n, double p) {
  double term = std::pow(1 - p, static_cast<double>(n)), sum = term;
  size_t k = 0;
  while (1 - sum >= 0.001) {
    term *= static_cast<double>(n - k) / static_cast<double>(k + 1) * p / (1 - p);
    sum += term;
    ++k;
  }
  return k;
}

size_t fleets_to_simulate() {
  const char* given = std::getenv("TALLY_FLEETS");
  return given != nullptr ? static_cast<size_t>(std::atol(given)) : 60;
}

void report(const char* limit, const Noise& noise, const Count& count) {
  const auto per = [&](size_t part, size_t whole) {
    return 100.0 * static_cast<double>(part) / static_cast<double>(whole);
  };
  const size_t planted = kPlanted * count.fleets;
  std::printf("| %s | %s | %zu of %zu | %.2f %% | %.1f %% | %.1f %% | %.2f %% | %.1f | %.0f %% |\n",
              limit, noise.name.c_str(), count.accused_wrongly, count.fleets,
              per(count.passed_at_limit, planted), per(count.found5, planted),
              per(count.found2, planted), per(count.undecided, count.healthy),
              static_cast<double>(count.repeats) / static_cast<double>(count.fleets * kNodes),
              per(count.repeats, count.fleets * kNodes * kFixedPlan));
}

}  // namespace

TEST_CASE("fleets are accused falsely as rarely as stated, and cost half of a fixed plan") {
  const size_t fleets = fleets_to_simulate();
  std::printf(
      "| limit | noise | fleets with a false accusation | nodes at the limit that pass | 5 %% "
      "slower: "
      "slow | 2 %% slower: as it is | healthy nodes undecided | repeats a node | of 20 |\n");
  for (const double limit : {0.97, 0.99}) {
    uint64_t seed = 56;
    for (const Noise& noise : noises()) {
      Random random(seed++);
      FleetRule rule;
      rule.of_median = limit;
      Count count;
      for (size_t i = 0; i < fleets; ++i) add_fleet(noise, rule, random, &count);
      report(limit < 0.98 ? "97 %" : "99 %", noise, count);
      INFO(noise.name, ", limit ", limit);
      CHECK(count.accused_wrongly <= binomial_bound(count.fleets, rule.wrong));
      CHECK(count.passed_at_limit <= binomial_bound(kPlanted * count.fleets, rule.wrong));
      CHECK(count.found5 >= 0.97 * static_cast<double>(kPlanted * count.fleets));
      CHECK(count.found2 >= 0.85 * static_cast<double>(kPlanted * count.fleets));
      const double used = static_cast<double>(count.repeats) /
                          static_cast<double>(count.fleets * kNodes * kFixedPlan);
      CHECK(used <= (limit < 0.98 ? 0.35 : 0.55));
    }
  }
}

// The hardest fleet: against a baseline all nodes are exactly at the limit, so that each of them may
// be accused falsely, at each look.
TEST_CASE("a fleet at the limit of its contract is accused as rarely as stated") {
  const size_t fleets = fleets_to_simulate() / 2;
  for (const Noise& noise : noises()) {
    Random random(5);
    const FleetRule rule;
    size_t accused = 0, passed = 0;
    for (size_t i = 0; i < fleets; ++i) {
      FleetRate rate;
      rate.logs.resize(kNodes);
      rate.baseline = Interval{-std::log(rule.at_least), -std::log(rule.at_least)};
      bool any = false;
      std::vector<bool> passes(kNodes, false);
      for (int repeat = 0; repeat < kMost; ++repeat) {
        for (size_t node = 0; node < kNodes; ++node)
          rate.logs[node].push_back(noise.draw(random, node));
        if (fleet_round(repeat, kFirst) == fleet_round(repeat + 1, kFirst) && repeat + 1 < kMost)
          continue;
        // The median tells nothing here: all pass against it.
        const std::vector<RateVerdict> now = judge_rate(rate, rule, rate.hypotheses());
        for (size_t node = 0; node < kNodes; ++node) {
          any = any || now[node] == RateVerdict::slow;
          if (now[node] == RateVerdict::passes) passes[node] = true;
        }
      }
      accused += any ? 1 : 0;
      passed += static_cast<size_t>(std::ranges::count(passes, true));
    }
    std::printf("at the limit, %s: %zu of %zu fleets accused, %.2f %% of the nodes pass\n",
                noise.name.c_str(), accused, fleets,
                100 * static_cast<double>(passed) / static_cast<double>(fleets * kNodes));
    INFO(noise.name);
    CHECK(accused <= binomial_bound(fleets, rule.wrong));
    CHECK(passed <= binomial_bound(fleets * kNodes, rule.wrong));
  }
}

TEST_CASE("evidence is a product of bets that are won and lost") {
  // One value at one unit above the limit wins each bet once: 1 + mean of the bets.
  CHECK(evidence_above({1}, 0, 1) == doctest::Approx(1 + (0.125 + 0.25 + 0.5 + 0.75 + 1) / 5));
  CHECK(evidence_below({-1}, 0, 1) == doctest::Approx(evidence_above({1}, 0, 1)));
  // The clips: nothing wins more than 6 units, or loses more than one.
  CHECK(evidence_above({100}, 0, 1) == doctest::Approx(evidence_above({6}, 0, 1)));
  CHECK(evidence_above({-100}, 0, 1) == doctest::Approx(evidence_above({-1}, 0, 1)));
  CHECK(evidence_above({}, 0, 1) == 1);
  // Bolder: at three quarters of a unit each bet is won once.
  CHECK(bold_evidence_above({0.75}, 0, 1) ==
        doctest::Approx(1 + 0.05 * 0.125 + 0.05 * 0.25 + 0.1 * 0.5 + 0.2 * 0.75 + 0.6));
  CHECK(bold_evidence_above({}, 0, 1) == doctest::Approx(1));
}

TEST_CASE("the confidence sequence holds the level at all times at once") {
  // Whether it ever leaves out the true level, in 60 repeats: at most 5 % of the trials.
  Random random(7);
  constexpr size_t kTrials = 400;
  size_t left = 0;
  for (size_t trial = 0; trial < kTrials; ++trial) {
    Sample values;
    bool out = false;
    for (int i = 0; i < 60 && !out; ++i) {
      values.push_back(0.01 * simulated::normal(random));
      const Interval now = confidence_sequence(values, gain_unit(0.01));
      out = now.low > 0 || now.high < 0;
    }
    left += out ? 1 : 0;
  }
  CHECK(left <= binomial_bound(kTrials, 0.05));
}

TEST_CASE("bounds of the confidence sequence are where the evidence reaches its level") {
  const Sample values = {0.01, -0.004, 0.003, 0.002, -0.001, 0.004, 0.0, 0.005};
  const Interval interval = confidence_sequence(values, 0.004);
  CHECK(evidence_above(values, interval.low, 0.004) == doctest::Approx(40));
  CHECK(evidence_below(values, interval.high, 0.004) == doctest::Approx(40));
  CHECK(interval.low < 0.002);
  CHECK(interval.high > 0.002);
}

TEST_CASE("the noise is that between consecutive repeats of a node") {
  Random random(3);
  std::vector<Sample> nodes;
  for (int node = 0; node < 200; ++node) {
    Sample values;
    for (int i = 0; i < 10; ++i) values.push_back(node + 0.02 * simulated::normal(random));
    nodes.push_back(values);
  }
  CHECK(noise_scale(nodes) == doctest::Approx(0.02).epsilon(0.05));
  CHECK(noise_scale({{1}, {2}}) == 0);
}

TEST_CASE("a baseline is a second reference, with the width of its interval") {
  FleetRate rate;
  for (int node = 0; node < 6; ++node) rate.logs.emplace_back(8, 0.0);
  CHECK(rate.hypotheses() == 6);
  CHECK(judge_rate(rate, {}, 6) == std::vector<RateVerdict>(6, RateVerdict::passes));
  // All are 10 % below what was accepted: the median does not tell, the baseline does.
  rate.baseline = Interval{std::log(1 / 0.9), std::log(1 / 0.9)};
  CHECK(rate.hypotheses() == 12);
  CHECK(judge_rate(rate, {}, 12) == std::vector<RateVerdict>(6, RateVerdict::slow));
  // What was accepted so vaguely decides nothing.
  rate.baseline = Interval{std::log(1 / 1.1), std::log(1 / 0.9)};
  CHECK(judge_rate(rate, {}, 12) == std::vector<RateVerdict>(6, RateVerdict::undecided));
  // Two have no median of their own.
  rate = {};
  rate.logs = {Sample(8, 0.0), Sample(8, -0.5)};
  CHECK(judge_rate(rate, {}, 2) == std::vector<RateVerdict>(2, RateVerdict::undecided));
  CHECK(!deviations(rate)[0].of_median.has_value());
}

TEST_CASE("rounds grow by a third") {
  std::vector<int> rounds;
  for (int repeat = 0; repeat < 14; ++repeat) rounds.push_back(fleet_round(repeat, 3));
  CHECK(rounds == std::vector<int>{0, 0, 0, 1, 2, 3, 4, 4, 5, 5, 6, 6, 6, 7});
}
