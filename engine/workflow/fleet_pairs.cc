#include "engine/workflow/fleet_pairs.h"

#include <algorithm>
#include <set>

#include "engine/base/text.h"

namespace tally {

std::string fleet_pairs(const std::vector<std::string>& machines, size_t rounds) {
  if (machines.size() < 2) return {};
  // One place is fixed, and the others turn around it. An empty name rests.
  std::vector<std::string> circle = machines;
  if (circle.size() % 2 != 0) circle.emplace_back();
  const size_t size = circle.size();
  std::vector<std::string> pairs;
  for (size_t round = 0; round < std::min(rounds, size - 1); ++round) {
    for (size_t i = 0; i < size / 2; ++i) {
      const std::string &one = circle[i], &other = circle[size - 1 - i];
      if (!one.empty() && !other.empty()) pairs.push_back(one + "," + other);
    }
    std::rotate(circle.begin() + 1, circle.end() - 1, circle.end());
  }
  return join(pairs, ";");
}

std::map<std::string, int, std::less<>> fleet_rounds(const Benchmark& benchmark) {
  std::map<std::string, int, std::less<>> rounds;
  const Parameter* pairs = find_parameter(benchmark, kFleetPair);
  if (pairs == nullptr) return rounds;
  int round = 0;
  std::set<std::string> in_round;
  for (const std::string& pair : split_strip(pairs->value.value, pairs->separator)) {
    const auto [one, other] = machines_of(pair);
    if (in_round.count(one) != 0 || in_round.count(other) != 0) {
      ++round;
      in_round.clear();
    }
    in_round.insert({one, other});
    rounds.emplace(pair, round);
  }
  return rounds;
}

std::pair<std::string, std::string> machines_of(std::string_view pair) {
  const size_t comma = pair.find(',');
  if (comma == std::string_view::npos) return {std::string(pair), {}};
  return {std::string(pair.substr(0, comma)), std::string(pair.substr(comma + 1))};
}

}  // namespace tally
