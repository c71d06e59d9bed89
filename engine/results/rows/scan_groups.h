// Reads the files of all groups. Private to results/.
#pragma once

#include "engine/results/read/scan.h"
#include "engine/results/rows/groups.h"

namespace tally {

// Fills `found` of every group, and `own` if `each_member` and it has several members. Large runs
// are read by several threads. What the returned scanner reports does not depend on their number.
Scanner scan_groups(const Benchmark& benchmark, const Analyser& analyser, bool each_member,
                    Groups& groups);

}  // namespace tally
