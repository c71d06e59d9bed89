// Puts many workpackages into one job, as an array of jobs or as steps of one allocation. Pure
// functions from texts to texts.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "engine/expand/substitute.h"
#include "engine/workflow/step_kinds.h"
#include "engine/workflow/workflow.h"

namespace tally {

// Fails with a sentence when size or at_once is not a whole number of at least 1.
bool pack_rule(const Step& step, const Lookup& lookup, PackRule* rule, std::string* error);

// The scheduler's options at the start of a job script.
std::string script_options(const std::string& script);
// The options that apply to the job as a whole and not to one member's output. Workpackages with
// equal common options go into one job.
std::string common_options(const std::string& options);

PackMember pack_member(const std::string& directory, const std::string& script,
                       const std::string& options,
                       const std::vector<std::pair<std::string, std::string>>& environment,
                       const Lookup& lookup);
// Returns the script of the job. It starts each member's own script in the member's directory with
// the member's output files. The end of one member does not affect the others. `options`:
// common_options() of the members' scripts. In an allocation `at_once` members run side by side.
// The time limit is multiplied by the number of rounds, and the resources that the scheduler gives
// for a node grow with at_once.
std::string pack_script(const PackRule& rule, const std::string& options,
                        const std::vector<PackMember>& members);
}  // namespace tally
