// Estimates what a plan's jobs may cost, before anything is submitted.
#pragma once

#include <iosfwd>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "engine/expand/expand.h"
#include "engine/plan/plan.h"
#include "engine/workflow/step_kinds.h"

namespace tally {

// A workpackage's job as far as the plan knows it.
struct PlannedJob {
  bool submitted = false;  // it is submitted to a scheduler
  std::string scheduler;   // its name
  std::string script;      // the job script's name in the work directory
  std::string nodes, time_limit;
  long retries = 0;  // jobs that may follow one that failed
  // Upper bound: nodes times the time limit, of all attempts. None: unknown.
  std::optional<double> node_hours;
  // Limits of its platform, where the platform sets them: the most node-hours of a run, and the
  // longest time limit in seconds.
  std::optional<double> max_node_hours, max_seconds;
  std::string max_time;
  // jobs_in_flight and pending_limit of its platform. Empty where they are not set.
  std::string in_flight, pending;
  PackRule pack;
  std::string asks;  // all its requests to the scheduler; jobs with equal requests may be shared
};
PlannedJob planned_job(const Plan& plan, const Expander& expander, const Workpackage& workpackage);

struct Estimate {
  // Jobs of one step with the same requests.
  struct Group {
    std::string step, nodes, time_limit, in_flight, pending;
    size_t jobs = 0, workpackages = 0;
    PackRule pack;
    long retries = 0;                  // of each workpackage
    std::optional<double> node_hours;  // of all jobs of the group
  };
  std::vector<Group> groups;         // in the order of their first jobs
  std::set<std::string> schedulers;  // of these jobs
  // The ids of workpackages that share a job (pack). The packs are in the order of their first
  // members.
  std::vector<std::vector<int>> packs;
  size_t jobs = 0;                       // jobs in the scheduler's queue
  size_t unknown = 0;                    // jobs whose node-hours are unknown
  double node_hours = 0;                 // upper bound for the other jobs
  std::optional<double> max_node_hours;  // the smallest limit that a platform sets
  std::string too_long;  // why a platform does not accept a job's time limit; or empty
};
Estimate estimate_jobs(const Plan& plan, const Expander& expander);

// Prints "  train: 4 jobs x 2 nodes x 00:30:00 = 4.0 node-hours", one line for each group.
void print_estimate(const Estimate& estimate, std::ostream& out);

// Says in one sentence why the run may not be started. Empty if it may be. `limit` is the limit
// from the command line, if there is one. If node-hours are limited, a job of unknown size is
// refused.
std::string refusal(const Estimate& estimate, std::optional<double> limit);

}  // namespace tally
