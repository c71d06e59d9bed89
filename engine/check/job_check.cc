#include "engine/check/job_check.h"

#include <fmt/format.h>

#include <cstdint>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>

#include "engine/base/text.h"
#include "engine/base/variables.h"
#include "engine/workflow/job_options.h"

namespace tally {
namespace {

// Calls `use` with each parameter of the sets that the step names.
template <typename Use>
void each_parameter(const Benchmark& benchmark, const Step& step, const Use& use) {
  for (const Text& names : step.use) {
    for (const std::string& name : split_strip(names.value, ",")) {
      const auto set = benchmark.parameter_sets.find(name);
      if (set == benchmark.parameter_sets.end()) continue;
      for (const Parameter& parameter : set->second.parameters) use(parameter);
    }
  }
}

bool has_one_value(const Parameter& parameter) {
  return parameter.mode == Mode::text &&
         (parameter.separator.empty() ||
          parameter.value.value.find(parameter.separator) == std::string::npos);
}

// In JUBE's way a parameter of such a name would be what a job asks for. Here only `resources` says
// it, and a table of the parameter would show nodes that no job had.
void check_requests(const Benchmark& benchmark, const Step& step, Diagnostics& diagnostics) {
  std::string texts;
  for (const ResourceKey& one : resource_keys()) {
    texts += (step.resources.*one.text).value + " ";
    for (const Step& other : step.components) texts += (other.resources.*one.text).value + " ";
  }
  const std::set<std::string> named = variables_in(texts);
  each_parameter(benchmark, step, [&](const Parameter& parameter) {
    if (parameter.owner != Owner::user) return;
    const std::string& name = parameter.name.value;
    if (named.count(name) > 0) return;
    for (const ResourceKey& one : resource_keys()) {
      const std::string_view key = one.key;
      const bool count = key == "nodes" || key.find("_per_") != std::string_view::npos;
      if (!count || name != one.parameter || !(step.resources.*one.text).value.empty()) continue;
      diagnostics.warning(
          parameter.name.mark,
          fmt::format("parameter '{}' is not what the jobs of step '{}' ask for: its `resources` "
                      "have no `{}`",
                      name, step.name.value, one.key),
          fmt::format("resources: {{{}: ${}}}", one.key, name));
    }
  });
}

}  // namespace

Mark place_of(const Benchmark& benchmark, const Step& step, const JobFault& fault) {
  if (fault.mark.known()) return fault.mark;
  Mark mark = step.name.mark;
  if (fault.parameter == "jube_benchmark_name") mark = benchmark.name.mark;
  each_parameter(benchmark, step, [&](const Parameter& parameter) {
    if (parameter.name.value != fault.parameter) return;
    if (parameter.owner != Owner::user || parameter.exported) mark = parameter.value.mark;
  });
  return mark;
}

void check_job_scripts(const Benchmark& benchmark, Diagnostics& diagnostics) {
  std::set<std::tuple<uint32_t, uint32_t, uint32_t, std::string>> told;
  for (const Step& step : benchmark.steps) {
    std::unordered_map<std::string, std::string> constants;
    std::set<std::string, std::less<>> users;
    each_parameter(benchmark, step, [&](const Parameter& parameter) {
      const std::string& name = parameter.name.value;
      if (parameter.owner == Owner::user) {
        users.insert(name);
        if (has_one_value(parameter)) constants[name] = parameter.value.value;
      } else if (has_one_value(parameter)) {
        constants[parameter.owner == Owner::any ? name : platform_name(name)] =
            parameter.value.value;
      }
    });
    constants["jube_benchmark_name"] = benchmark.name.value;
    const Lookup lookup = [&](std::string_view name) -> const std::string* {
      const std::string_view bare = without_platform_prefix(name);
      auto found = constants.find(std::string(name));
      if (found != constants.end()) return &found->second;
      if (users.count(bare) > 0) return &no_platform_value();
      found = constants.find(bare.empty() ? platform_name(name) : std::string(bare));
      return found == constants.end() ? nullptr : &found->second;
    };
    const std::string scheduler = stripped_value(lookup, "scheduler");
    const bool submits = step.kind == StepKind::run && !step.launch.value.empty() &&
                         !scheduler.empty() && scheduler != "local";
    if (submits) check_requests(benchmark, step, diagnostics);
    const auto report = [&](const Mark& mark, const std::string& message, const std::string& hint) {
      if (told.emplace(mark.file, mark.line, mark.column, message).second)
        diagnostics.error(mark, message, hint);
    };
    for (const JobFault& fault : step.kinds->job_faults(step, lookup))
      report(place_of(benchmark, step, fault), fault.message, fault.hint);
    if (step.kind != StepKind::run || scheduler != "slurm") continue;
    const JobRequests requests = requests_of_job(step, lookup);
    each_parameter(benchmark, step, [&](const Parameter& parameter) {
      if (!parameter.exported) return;
      const auto fault = variable_fault(parameter.name.value, parameter.value.value, requests);
      if (fault) report(parameter.name.mark, fault->message, fault->hint);
    });
  }
}

}  // namespace tally
