// What a plan's jobs may cost, known before anything is submitted.
#pragma once

#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "engine/expand/expand.h"
#include "engine/plan/plan.h"
#include "engine/workflow/step_kinds.h"

namespace tally {

// A workpackage's job as far as the plan knows it.
struct PlannedJob {
  bool submitted = false;  // goes to a scheduler
  std::string script;      // its name in the work directory
  std::string nodes, time_limit;
  std::optional<double> node_hours;  // at most: nodes times the time limit; none: not known
  // Of its platform, where it says: the most node-hours of a run, the longest time limit in
  // seconds.
  std::optional<double> max_node_hours, max_seconds;
  std::string max_time;
  // jobs_in_flight and pending_limit of its platform; empty where nobody set them.
  std::string in_flight, pending;
  PackRule pack;
  std::string asks;  // all that it asks of the scheduler: equal ones may share a job
};
PlannedJob planned_job(const Plan& plan, const Expander& expander, const Workpackage& workpackage);

struct Estimate {
  // Jobs of a step that ask for the same.
  struct Group {
    std::string step, nodes, time_limit, in_flight, pending;
    size_t jobs = 0, workpackages = 0;
    PackRule pack;
    std::optional<double> node_hours;  // of all of them
  };
  std::vector<Group> groups;  // in the order of their first jobs
  // Workpackages that share a job (pack), by id, in the order of their first.
  std::vector<std::vector<int>> packs;
  size_t jobs = 0;                       // of the scheduler's queue
  size_t unknown = 0;                    // jobs whose node-hours are not known
  double node_hours = 0;                 // of the others, at most
  std::optional<double> max_node_hours;  // the least that a platform allows
  std::string too_long;  // why a job's time limit is none its platform takes; or empty
};
Estimate estimate_jobs(const Plan& plan, const Expander& expander);

// "  train: 4 jobs x 2 nodes x 00:30:00 = 4.0 node-hours", a line for each group.
void print_estimate(const Estimate& estimate, std::ostream& out);

// One sentence why the run is not to be started; empty when it may be. `limit`: of the command
// line, if there is one. Where node-hours are limited, a job of unknown size is refused.
std::string refusal(const Estimate& estimate, std::optional<double> limit);

}  // namespace tally
