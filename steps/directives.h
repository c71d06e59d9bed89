// The scheduler's directives at the head of a run step's job script.
#pragma once

#include <string>
#include <string_view>

#include "engine/workflow/step_kinds.h"
#include "engine/workflow/workflow.h"

namespace tally {

// The value of a name: the one that a step's keys gave, or else the one for jobs.
std::string value_in(const NamedValues& values, const Lookup& lookup, std::string_view name);

// The options of the step's platform: its parameters site_option_1, site_option_2 and so on.
NamedValues platform_options(const Lookup& lookup);
// The options of the step itself, with their parameters' values.
NamedValues step_options(const Step& step, const Lookup& lookup);

// The options of a step's platform that the step's own do not replace, and the step's own.
struct JobOptions {
  NamedValues site, own;
};
// In table_directives.cc: the same for a scheduler that a table describes. `lookup` knows `values`.
void add_table_directives(const Step& step, const JobOptions& options, NamedValues& values,
                          const Lookup& lookup);

// Adds the lines of the options, and values as the directives state them (see kinds.h). `values`
// has what the step's other keys gave.
void add_directives(const Step& step, NamedValues& values, const Lookup& lookup);

// `name` in `folder` as a directive for output names it: `name` may be a pattern of Slurm's, and
// `folder` is none, whatever it contains. `name` alone if Slurm finds it from the job's folder.
std::string output_directive(const std::string& folder, const std::string& name);

// The name of an output file that a directive gives, or empty if it is a pattern of Slurm's.
std::string output_file(const std::string& directive);

}  // namespace tally
