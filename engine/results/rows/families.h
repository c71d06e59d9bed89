// Groups workpackages into families. Members of a family are iterations of the same workpackage.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <unordered_map>

#include "engine/results/read/workpackage_view.h"

namespace tally {

// Returns the number of each workpackage's family. Members have the same step and the same point,
// and differ in their own iteration or in that of a parent. As in JUBE, iterations of one parent
// are separate families if another parent is the same for all of them. `point_key`: equal for equal
// points. `own_values`: the parameters that may differ between iterations of one workpackage,
// because they follow from jube_wp_* or are evaluated again. If they differ between iterations of
// its parents, these are separate families.
std::unordered_map<int, size_t> find_families(
    const WorkpackagesById& workpackages,
    const std::function<std::string(const WorkpackageView&)>& point_key,
    const std::function<std::string(const WorkpackageView&)>& own_values);

}  // namespace tally
