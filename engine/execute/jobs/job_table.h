// A table of a run's jobs, for the terminal during a run and for `tally status`.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "engine/base/status.h"
#include "engine/execute/jobs/jobs.h"
#include "engine/execute/jobs/scheduler.h"
#include "engine/journal/journal.h"

namespace tally {

// Returns a heading and one line for each job, running jobs first. With more than `most` jobs, one
// line sums up the rest. Lines are cut to `columns` (0: never). `now`: seconds since 1970. Empty
// without jobs.
std::vector<std::string> job_lines(const std::vector<JobView>& views, size_t most, size_t columns,
                                   long long now);

// Counts of a run's jobs as its journal has them, for text such as "3 queued, 2 running, 5 ended".
struct JobCounts {
  int queued = 0, running = 0, to_submit = 0, ended = 0;
  std::string text() const;
};

// Lists the jobs of a run, whether or not an engine follows them. The journal has the list; the
// scheduler is queried once for their states. An error status carries the scheduler's message. The
// journal's data is then all that is shown.
Status jobs_of_run(const Journal& journal, Scheduler& scheduler, std::vector<JobView>* views,
                   JobCounts* counts);

// Asks the scheduler what the jobs of a run used, and keeps it in the journal: the jobs that have
// ended and of which the journal has no complete record. Records come some seconds after a job's
// end: `patience` is how long they are waited for. An error status means that the journal failed.
Status collect_job_use(Journal& journal, Scheduler& scheduler, std::chrono::milliseconds patience);

}  // namespace tally
