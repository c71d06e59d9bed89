// Translates the end of a job into the outcome of its workpackage.
#pragma once

#include "engine/execute/jobs/jobs.h"
#include "engine/execute/task.h"
#include "engine/workpackage/outcome.h"

namespace tally {

// Returns done, an outcome that the step expects, or failed. A failure carries the scheduler's
// message and the last output of the job's program.
Outcome outcome_of_job(const Task& task, const JobEnd& end);

}  // namespace tally
