#include "engine/plan/estimate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <ostream>
#include <utility>

#include "engine/base/duration.h"
#include "engine/workpackage/values.h"

namespace tally {
namespace {

std::optional<double> number_of(const std::string& text) {
  char* end = nullptr;
  const double number = strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0' || !(number >= 0)) return std::nullopt;
  return number;
}

std::string jobs_of(size_t count) {
  return fmt::format("{} job{}", count, count == 1 ? "" : "s");
}

}  // namespace

PlannedJob planned_job(const Plan& plan, const Expander& expander, const Workpackage& workpackage) {
  const Step& step = plan.benchmark->steps[static_cast<size_t>(workpackage.step)];
  PlannedJob job;
  if (step.kind != StepKind::run) return job;
  const WorkpackageValues values(*plan.benchmark, expander, workpackage);
  const Lookup lookup = values.lookup();
  const auto value = [&](std::string_view name) { return stripped_value(lookup, name); };
  const Platform platform = step.kinds->platform_of(step, lookup);
  job.submitted = !platform.local();
  job.scheduler = platform.scheduler;
  job.script = platform.submit_script;
  job.nodes = value(step.components.empty() ? "nodes" : "totalnodes");
  job.time_limit = value("timelimit");
  const std::optional<double> nodes = number_of(job.nodes);
  const std::optional<double> seconds = parse_duration(job.time_limit);
  job.retries = std::max(0L, strtol(values.apply(step.retry).c_str(), nullptr, 10));
  if (nodes && seconds)
    job.node_hours = *nodes * *seconds / 3600 * static_cast<double>(1 + job.retries);
  job.max_node_hours = number_of(value("max_node_hours"));
  job.max_time = value("max_time");
  job.max_seconds = parse_duration(job.max_time);
  if (job.max_seconds.value_or(0) <= 0) job.max_seconds.reset();  // no limit
  if (number_of(value("jobs_in_flight")).value_or(0) > 0) job.in_flight = value("jobs_in_flight");
  if (parse_duration(value("pending_limit")).value_or(0) > 0) job.pending = value("pending_limit");
  // The run reports an error for the workpackage concerned.
  if (!step.kinds->pack_rule(step, lookup, &job.pack)) job.pack.kind = PackRule::Kind::none;
  for (const char* name :
       {"nodes", "taskspernode", "threadspertask", "gpuspernode", "memory", "timelimit", "queue",
        "account", "signal", "site_hint", "site_options", "scheduler_options"}) {
    job.asks += value(name) + "\n";
  }
  return job;
}

namespace {

// Adds the packs of workpackages of one step with the same requests, and their cost.
void add_packs(const std::vector<int>& workpackages, const PlannedJob& job, Estimate::Group& group,
               Estimate* estimate) {
  const auto size = static_cast<size_t>(job.pack.size);
  for (size_t at = 0; at < workpackages.size(); at += size) {
    const size_t members = std::min(size, workpackages.size() - at);
    const auto first = workpackages.begin() + static_cast<std::ptrdiff_t>(at);
    estimate->packs.emplace_back(first, first + static_cast<std::ptrdiff_t>(members));
    ++group.jobs;
    ++estimate->jobs;
    const std::optional<double> seconds = pack_seconds(job.pack, members);
    if (job.pack.kind == PackRule::Kind::steps && estimate->too_long.empty() && job.max_seconds &&
        seconds && *seconds > *job.max_seconds) {
      estimate->too_long = fmt::format(
          "{} workpackages of step '{}' in one job need {:.0f} minutes, beyond the {} that its "
          "platform takes; give pack a smaller size",
          members, group.step, *seconds / 60, job.max_time);
    }
    if (!job.node_hours) {
      ++estimate->unknown;
      continue;
    }
    double hours = *job.node_hours * static_cast<double>(members);
    if (job.pack.kind == PackRule::Kind::steps) {
      hours = *job.node_hours * *pack_seconds(job.pack, members) / *job.pack.seconds;
    }
    group.node_hours = group.node_hours.value_or(0) + hours;
    estimate->node_hours += hours;
  }
}

void add_limits(const PlannedJob& job, const Step& step, Estimate* estimate) {
  if (job.max_node_hours) {
    estimate->max_node_hours =
        std::min(*job.max_node_hours, estimate->max_node_hours.value_or(*job.max_node_hours));
  }
  std::optional<double> seconds = parse_duration(job.time_limit);
  if (estimate->too_long.empty() && job.max_seconds && seconds && *seconds > *job.max_seconds) {
    estimate->too_long =
        fmt::format("the time limit {} of step '{}' is beyond the {} that its platform takes",
                    job.time_limit, step.name.value, job.max_time);
  }
}

}  // namespace

Estimate estimate_jobs(const Plan& plan, const Expander& expander) {
  Estimate estimate;
  struct Alike {
    PlannedJob job;
    std::vector<int> workpackages;
  };
  std::map<std::pair<int, std::string>, size_t> known;
  std::vector<Alike> alike;  // one for each group
  for (const Workpackage& workpackage : plan.workpackages) {
    const Step& step = plan.benchmark->steps[static_cast<size_t>(workpackage.step)];
    if (step.kind != StepKind::run || workpackage.outcome.state == State::failed) continue;
    if (plan.in_doubt.count(workpackage.id) > 0) continue;
    PlannedJob job = planned_job(plan, expander, workpackage);
    if (!job.submitted) continue;
    estimate.schedulers.insert(job.scheduler);
    add_limits(job, step, &estimate);
    const bool packed = job.pack.kind != PackRule::Kind::none;
    const std::string key = packed ? job.asks + "\n" + std::to_string(job.retries)
                                   : std::to_string(job.retries) + "\n" + job.nodes + "\n" +
                                         job.time_limit + "\n" + job.in_flight + "\n" + job.pending;
    const auto [entry, fresh] = known.try_emplace({workpackage.step, key}, alike.size());
    if (fresh) {
      Estimate::Group group;
      group.step = step.name.value;
      group.nodes = job.nodes;
      group.time_limit = job.time_limit;
      group.in_flight = job.in_flight;
      group.pending = job.pending;
      group.pack = job.pack;
      group.retries = job.retries;
      estimate.groups.push_back(group);
      alike.push_back({job, {}});
    }
    Estimate::Group& group = estimate.groups[entry->second];
    ++group.workpackages;
    if (packed) {
      alike[entry->second].workpackages.push_back(workpackage.id);
      continue;
    }
    ++group.jobs;
    ++estimate.jobs;
    if (!job.node_hours) {
      ++estimate.unknown;
      continue;
    }
    group.node_hours = group.node_hours.value_or(0) + *job.node_hours;
    estimate.node_hours += *job.node_hours;
  }
  for (size_t i = 0; i < alike.size(); ++i) {
    add_packs(alike[i].workpackages, alike[i].job, estimate.groups[i], &estimate);
  }
  std::ranges::sort(estimate.packs);
  // The run of a fleet begins nothing more once its budget is spent.
  const double budget = std::strtod(plan.benchmark->fleet.find_given("budget").c_str(), nullptr);
  if (budget > 0) estimate.node_hours = std::min(estimate.node_hours, budget);
  return estimate;
}

void print_estimate(const Estimate& estimate, std::ostream& out) {
  for (const Estimate::Group& group : estimate.groups) {
    std::string what = jobs_of(group.jobs);
    std::string round = group.time_limit.empty() ? "no time limit" : group.time_limit;
    if (group.pack.kind == PackRule::Kind::array) {
      what = fmt::format("{} tasks in {} array{}", group.workpackages, group.jobs,
                         group.jobs == 1 ? "" : "s");
    } else if (group.pack.kind == PackRule::Kind::steps) {
      what = fmt::format("{} in {}, {} at once", group.workpackages, what, group.pack.at_once);
    }
    out << fmt::format("  {}: {} x {} node{} x {} ", group.step, what,
                       group.nodes.empty() ? "?" : group.nodes, group.nodes == "1" ? "" : "s",
                       round);
    if (group.retries > 0) out << fmt::format("x {} attempts ", 1 + group.retries);
    out << "= ";
    if (group.node_hours) {
      out << fmt::format("{:.1f} node-hours at most", *group.node_hours);
    } else {
      out << "node-hours unknown";
    }
    if (!group.in_flight.empty())
      out << fmt::format("; {} job{} at once", group.in_flight, group.in_flight == "1" ? "" : "s");
    if (!group.pending.empty()) out << fmt::format("; waits for {} at most", group.pending);
    out << '\n';
  }
}

std::string refusal(const Estimate& estimate, std::optional<double> limit) {
  if (!estimate.too_long.empty()) return estimate.too_long;
  if (estimate.schedulers.size() > 1) {
    return fmt::format("the jobs of a run go to one scheduler, and these go to {}",
                       fmt::join(estimate.schedulers, " and "));
  }
  for (const auto& [most, who] :
       {std::make_pair(limit, "--max-node-hours allows"),
        std::make_pair(estimate.max_node_hours, "max_node_hours of its platform allows")}) {
    if (!most) continue;
    if (estimate.node_hours > *most) {
      return fmt::format("the run may take {:.1f} node-hours in {}, more than the {:g} that {}",
                         estimate.node_hours, jobs_of(estimate.jobs), *most, who);
    }
    if (estimate.unknown > 0) {
      return fmt::format(
          "the node-hours of {} are not known (nodes or time limit), and no more than the {:g} "
          "that "
          "{} may be taken",
          jobs_of(estimate.unknown), *most, who);
    }
  }
  return {};
}

}  // namespace tally
