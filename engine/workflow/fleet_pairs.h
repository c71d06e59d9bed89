// The pairs of machines whose links `tally fleet` tests: the rounds of a tournament, in each of
// which every machine is in one pair.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/workflow/workflow.h"

namespace tally {

// The groups that a site names: racks, switches, rails. From the name of a machine to its group's.
using FleetGroups = std::map<std::string, std::string, std::less<>>;
// Reads lines "rack1: node1,node2".
FleetGroups fleet_groups(const std::string& lines);

// The value of the parameter `pair`: "a,b;c,d". So many rounds, or as many as there are. Without
// groups (or with one), all machines are in a round but one of an odd number, and two rounds have
// no pair in common (the circle method of round-robin tournaments). With groups, the first round
// and each second one after it has pairs within groups, and the others have pairs across them.
// Empty with fewer than two machines.
std::string fleet_pairs(const std::vector<std::string>& machines, const FleetGroups& groups,
                        size_t rounds);

// The round, from 0, of each pair that the benchmark's parameter `pair` has. A round ends where a
// machine would be in it twice.
std::map<std::string, int, std::less<>> fleet_rounds(const Benchmark& benchmark);

// The two machines of "a,b".
std::pair<std::string, std::string> machines_of(std::string_view pair);

}  // namespace tally
