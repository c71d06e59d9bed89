// Heterogeneous jobs: the components of a run step's job, and the line that starts their programs.
#pragma once

#include <vector>

#include "engine/workflow/step_kinds.h"
#include "engine/workflow/workflow.h"

namespace tally {

// Adds totalnodes, the nodes of all components. It does not do so for a step without components.
// `values` has what the step's `resources` gave.
void add_total_nodes(const Step& step, NamedValues& values, const Lookup& lookup);

// Adds launch_line: the platform's starter, the container and the program, of all components. With
// several components scheduler_options gets the lines that ask for the others: it is the last of a
// job script's options. `values` has what the step's keys gave, and totalnodes.
void add_launch_line(const Step& step, NamedValues& values, const Lookup& lookup,
                     const Lookup& written);

// Why the components cannot be one job. `lookup` has the values of the step.
std::vector<JobFault> component_faults(const Step& step, const Lookup& lookup);

// `lookup` for a component behind the first: what the step's own `resources` gave is not the
// component's.
Lookup beside_first(const Step& step, const Step& component, const Lookup& lookup);

}  // namespace tally
