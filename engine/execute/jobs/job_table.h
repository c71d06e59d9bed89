// The jobs of a run as people see them: on the terminal while a run goes on, and by `tally status`.
#pragma once

#include <string>
#include <vector>

#include "engine/execute/jobs/jobs.h"
#include "engine/execute/jobs/scheduler.h"
#include "engine/journal/journal.h"

namespace tally {

// A heading and a line a job, those that run first; of more than `most` jobs the rest in one line.
// Lines are cut to `columns` (0: never). `now`: seconds since 1970. Empty without jobs.
std::vector<std::string> job_lines(const std::vector<JobView>& views, size_t most, size_t columns,
                                   long long now);

// "3 queued, 2 running, 5 ended" and what else there is; of a run as its journal has it.
struct JobCounts {
  int queued = 0, running = 0, to_submit = 0, ended = 0;
  std::string text() const;
};

// The jobs of a run that another engine follows, or none: the journal says which they are, the
// scheduler is asked once how they are. A status: what the scheduler said instead; then the journal
// alone is shown.
Status jobs_of_run(const Journal& journal, Scheduler& scheduler, std::vector<JobView>* views,
                   JobCounts* counts);

}  // namespace tally
