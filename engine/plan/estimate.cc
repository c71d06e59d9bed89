#include "engine/plan/estimate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <ostream>
#include <tuple>

#include "engine/base/text.h"
#include "engine/plan/package_names.h"
#include "steps/kinds.h"

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

PlannedJob planned_job(const Plan& plan, const Expander& expander, const WorkPackage& package) {
  const Step& step = plan.benchmark->steps[static_cast<size_t>(package.step)];
  PlannedJob job;
  if (step.kind != StepKind::run) return job;
  const NamedValues builtins = package_builtins(*plan.benchmark, expander, plan.packages, package);
  const Lookup plain = package_lookup(expander, package, builtins);
  const NamedValues own = kind_values(step, plain);
  const Lookup lookup = [&](std::string_view name) -> const std::string* {
    for (const auto& [key, value] : own) {
      if (key == name) return &value;
    }
    return plain(name);
  };
  const auto value = [&](std::string_view name) {
    const std::string* found = lookup(name);
    return found != nullptr ? std::string(strip(*found)) : std::string();
  };
  const Platform platform = platform_of(step, lookup);
  job.submitted = !platform.local();
  job.script = platform.submit_script;
  job.nodes = value("nodes");
  job.time_limit = value("timelimit");
  const std::optional<double> nodes = number_of(job.nodes);
  const std::optional<double> seconds = parse_duration(job.time_limit);
  if (nodes && seconds) job.node_hours = *nodes * *seconds / 3600;
  job.max_node_hours = number_of(value("max_node_hours"));
  job.max_time = value("max_time");
  job.max_seconds = parse_duration(job.max_time);
  return job;
}

Estimate estimate_jobs(const Plan& plan, const Expander& expander) {
  Estimate estimate;
  std::map<std::tuple<int, std::string, std::string>, size_t> known;
  for (const WorkPackage& package : plan.packages) {
    const Step& step = plan.benchmark->steps[static_cast<size_t>(package.step)];
    if (step.kind != StepKind::run || !package.note.empty()) continue;
    const PlannedJob job = planned_job(plan, expander, package);
    if (!job.submitted) continue;
    ++estimate.jobs;
    const auto [entry, fresh] =
        known.try_emplace({package.step, job.nodes, job.time_limit}, estimate.groups.size());
    if (fresh) estimate.groups.push_back({step.name.value, job.nodes, job.time_limit, 0, {}});
    Estimate::Group& group = estimate.groups[entry->second];
    ++group.jobs;
    if (job.node_hours) {
      group.node_hours = group.node_hours.value_or(0) + *job.node_hours;
      estimate.node_hours += *job.node_hours;
    } else {
      ++estimate.unknown;
    }
    if (job.max_node_hours) {
      estimate.max_node_hours =
          std::min(*job.max_node_hours, estimate.max_node_hours.value_or(*job.max_node_hours));
    }
    const std::optional<double> seconds = parse_duration(job.time_limit);
    if (estimate.too_long.empty() && job.max_seconds && seconds && *seconds > *job.max_seconds) {
      estimate.too_long =
          fmt::format("the time limit {} of step '{}' is beyond the {} that its platform takes",
                      job.time_limit, step.name.value, job.max_time);
    }
  }
  return estimate;
}

void print_estimate(const Estimate& estimate, std::ostream& out) {
  for (const Estimate::Group& group : estimate.groups) {
    out << fmt::format("  {}: {} x {} node{} x {} = ", group.step, jobs_of(group.jobs),
                       group.nodes.empty() ? "?" : group.nodes, group.nodes == "1" ? "" : "s",
                       group.time_limit.empty() ? "no time limit" : group.time_limit);
    if (group.node_hours) {
      out << fmt::format("{:.1f} node-hours at most\n", *group.node_hours);
    } else {
      out << "node-hours unknown\n";
    }
  }
}

std::string refusal(const Estimate& estimate, std::optional<double> limit) {
  if (!estimate.too_long.empty()) return estimate.too_long;
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
