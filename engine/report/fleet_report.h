// The verdicts of a fleet for people and programs: a table, a map, JSON, JUnit, and the file of
// accepted values.
#pragma once

#include <string>
#include <vector>

#include "engine/base/status.h"
#include "engine/report/grid.h"
#include "engine/report/junit.h"
#include "engine/results/judge/fleet.h"

namespace tally {

// One row a machine; then pairs, of which those that pass are counted in fleet_summary() alone.
Grid fleet_grid(const FleetReport& report);
// "16 machines: 13 pass, 1 slow (node7), 1 wrong (node9), 1 undecided (node12); ...", the cost, and
// notes, a line each.
std::vector<std::string> fleet_summary(const FleetReport& report);
// The machines that Slurm should not use: "--exclude=node7,node9". Empty: none.
std::string fleet_exclude(const FleetReport& report);
// The machines as letters, a line a group: "." passes, "S" slow, "W" wrong, "?" undecided, "-" not
// tested. With `color`, in the terminal's colours (for print_styled()).
std::string fleet_map(const FleetReport& report, bool color);
// The same as a drawing, in which each machine says its verdict when it is pointed at.
std::string fleet_svg(const FleetReport& report, const std::string& title);
// `facts`: of the machine. docs/fleet.md describes the document.
std::string fleet_json(const FleetReport& report,
                       const std::vector<std::pair<std::string, std::string>>& facts,
                       const std::string& version);
// A test for each machine and pair. An undecided one is skipped.
JunitSuite fleet_suite(const FleetReport& report, const std::string& benchmark);

// The file of accepted values.
Status read_baseline(const std::string& path, FleetBaseline* out);
std::string baseline_text(const FleetBaseline& baseline,
                          const std::vector<std::pair<std::string, std::string>>& facts,
                          const std::string& version);

}  // namespace tally
