// Many workpackages in one job: an array of jobs, or steps of one allocation. Pure: texts in, texts
// out.
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

// The scheduler's options at the head of a job script.
std::string script_options(const std::string& script);
// Those that are for the job as a whole, not for one member's output: workpackages with equal ones
// go into one job.
std::string common_options(const std::string& options);

PackMember pack_member(const std::string& directory, const std::string& script,
                       const std::string& options,
                       const std::vector<std::pair<std::string, std::string>>& environment,
                       const Lookup& lookup);
// The script of the job that starts the members' own scripts, each in its own directory with its
// own output, and lets none of them suffer from another's end. `options`: common_options() of the
// members' scripts. In an allocation the members run `at_once` side by side, the time limit is that
// of as many rounds, and what the scheduler gives a node grows with at_once.
std::string pack_script(const PackRule& rule, const std::string& options,
                        const std::vector<PackMember>& members);
}  // namespace tally
