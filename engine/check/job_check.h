// Finds what the job scripts of run steps cannot state, as far as the workflow's texts show it.
// check_planned() looks at values of parameters.
#pragma once

#include "engine/base/diagnostics.h"
#include "engine/workflow/workflow.h"

namespace tally {

void check_job_scripts(const Benchmark& benchmark, Diagnostics& diagnostics);

// The place of a fault in the files: that of the step's text or of the platform's parameter.
Mark place_of(const Benchmark& benchmark, const Step& step, const JobFault& fault);

}  // namespace tally
