// The edges of the groups of a pattern of Python's `re`: what it says about the text on both sides.
#pragma once

#include <string_view>
#include <vector>

namespace tally {

// A side is open if the pattern names nothing that must stand there: it ends there, or has `.`, \S,
// \w or something optional. `energy: (\d+)` is open to the right, `(\d+)ms` and `v(\d+),` are not.
struct GroupEdges {
  bool left_open = true, right_open = true;
  bool literal = false;  // the group is a plain text, or several to choose from
};

// The whole pattern first, then its groups in order. The pattern must be valid.
std::vector<GroupEdges> group_edges(std::string_view pattern);

}  // namespace tally
