// The answers of the planner of a step's program about the step's layouts. The engine knows the
// program only through the kind of step (step_kinds.h).
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "engine/plan/plan.h"

namespace tally {

// Runs the planner once for each distinct layout, `most` at most, and prints one line for each. It
// runs no other command than the program that the kind of step names, which it takes from
// `directories` or else from PATH: never the one that a workflow names. Prints nothing when no step
// has such a program, and one line when the program is not found. A planner that does not answer
// within seconds is not asked again.
void print_training_plans(const Plan& plan, const Expander& expander,
                          const std::vector<std::string>& directories, size_t most,
                          std::ostream& out);

}  // namespace tally
