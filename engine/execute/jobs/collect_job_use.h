// Asks the scheduler what the jobs of a run used, and keeps it in the journal.
#pragma once

#include <chrono>

#include "engine/base/status.h"
#include "engine/execute/jobs/scheduler.h"
#include "engine/journal/journal.h"

namespace tally {

// Asks about the jobs that have ended and of which the journal has no complete record. Records come
// some seconds after a job's end: `patience` is how long they are waited for. An error status means
// that the journal failed.
Status collect_job_use(Journal& journal, Scheduler& scheduler, std::chrono::milliseconds patience);

}  // namespace tally
