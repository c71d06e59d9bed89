// Which workpackages are iterations of one.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>

#include "engine/results/analyse.h"

namespace tally {

// The number of each workpackage's family: those of one step and one point that differ in their own
// iteration or in that of a parent. As JUBE has it, iterations of one parent stay apart where
// another parent is the same for all of them. `point_key`: equal for equal points. `own_values`:
// the parameters that may differ between iterations of one workpackage (they follow from jube_wp_*,
// or are evaluated again); where they differ between iterations of its parents, those stay apart.
std::map<int, size_t> find_families(
    const std::map<int, const WorkpackageView*>& workpackages,
    const std::function<std::string(const WorkpackageView&)>& point_key,
    const std::function<std::string(const WorkpackageView&)>& own_values);

}  // namespace tally
