#include "engine/workflow/fleet_pairs.h"

#include <algorithm>
#include <set>

#include "engine/base/text.h"

namespace tally {

namespace {

using Names = std::vector<std::string>;

// Appends the pairs of one round of the tournament of all `machines`.
void add_round(Names circle, size_t round, Names* pairs) {
  // One place is fixed, and the others turn around it. An empty name rests.
  if (circle.size() % 2 != 0) circle.emplace_back();
  const size_t size = circle.size();
  if (size < 2 || round + 1 >= size) return;
  std::rotate(circle.begin() + 1, circle.end() - static_cast<std::ptrdiff_t>(round), circle.end());
  for (size_t i = 0; i < size / 2; ++i) {
    const std::string &one = circle[i], &other = circle[size - 1 - i];
    if (!one.empty() && !other.empty()) pairs->push_back(one + "," + other);
  }
}

// Appends the pairs of one round between the first half of the machines, group after group, and the
// second. Two machines of one group rest.
void add_round_across(const std::map<std::string, Names>& by_group, size_t round, Names* pairs) {
  std::vector<std::pair<const std::string*, const std::string*>> line;  // group, machine
  for (const auto& [group, machines] : by_group)
    for (const std::string& machine : machines) line.emplace_back(&group, &machine);
  const size_t half = line.size() / 2, others = line.size() - half;
  for (size_t i = 0; i < half && round < others; ++i) {
    const auto& [group, machine] = line[i];
    const auto& [other_group, other] = line[half + (i + round) % others];
    if (group != other_group) pairs->push_back(*machine + "," + *other);
  }
}

}  // namespace

FleetGroups fleet_groups(const std::string& lines) {
  FleetGroups groups;
  for (const std::string& line : split_strip(lines, "\n")) {
    const size_t colon = line.find(": ");
    if (colon == std::string::npos) continue;
    for (const std::string& name : split_strip(line.substr(colon + 2), ","))
      groups[name] = line.substr(0, colon);
  }
  return groups;
}

std::string fleet_pairs(const Names& machines, const FleetGroups& groups, size_t rounds) {
  std::map<std::string, Names> by_group;
  for (const std::string& machine : machines) {
    const auto group = groups.find(machine);
    by_group[group == groups.end() ? std::string() : group->second].push_back(machine);
  }
  Names pairs;
  for (size_t round = 0; round < rounds; ++round) {
    if (by_group.size() == 1) {
      add_round(machines, round, &pairs);
    } else if (round % 2 == 0) {
      for (const auto& [group, members] : by_group) add_round(members, round / 2, &pairs);
    } else {
      add_round_across(by_group, round / 2, &pairs);
    }
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
