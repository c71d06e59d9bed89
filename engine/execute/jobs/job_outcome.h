// What the end of a job means for its workpackage.
#pragma once

#include "engine/execute/jobs/jobs.h"
#include "engine/execute/task.h"
#include "engine/workpackage/outcome.h"

namespace tally {

// Done, in an outcome that the step expects, or failed: with the scheduler's words and what the
// job's program said last.
Outcome outcome_of_job(const Task& task, const JobEnd& end);

}  // namespace tally
