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

// The value of the parameter `pair`: "a,b;c,d". So many rounds, or as many as there are; of an odd
// number of machines one rests in each round. Two rounds have no pair in common (the circle method
// of round-robin tournaments). Empty with fewer than two machines.
std::string fleet_pairs(const std::vector<std::string>& machines, size_t rounds);

// The round, from 0, of each pair that the benchmark's parameter `pair` has. A round ends where a
// machine would be in it twice.
std::map<std::string, int, std::less<>> fleet_rounds(const Benchmark& benchmark);

// The two machines of "a,b".
std::pair<std::string, std::string> machines_of(std::string_view pair);

}  // namespace tally
