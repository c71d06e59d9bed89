#include "engine/check/job_check.h"

#include <cstdint>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>

#include "engine/base/text.h"
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

}  // namespace

Mark place_of(const Benchmark& benchmark, const Step& step, const JobFault& fault) {
  if (fault.mark.known()) return fault.mark;
  Mark mark = step.name.mark;
  if (fault.parameter == "jube_benchmark_name") mark = benchmark.name.mark;
  each_parameter(benchmark, step, [&](const Parameter& parameter) {
    if (parameter.name.value == fault.parameter) mark = parameter.value.mark;
  });
  return mark;
}

void check_job_scripts(const Benchmark& benchmark, Diagnostics& diagnostics) {
  std::set<std::tuple<uint32_t, uint32_t, uint32_t, std::string>> told;
  for (const Step& step : benchmark.steps) {
    std::unordered_map<std::string, std::string> constants;
    each_parameter(benchmark, step, [&](const Parameter& parameter) {
      if (has_one_value(parameter)) constants[parameter.name.value] = parameter.value.value;
    });
    constants["jube_benchmark_name"] = benchmark.name.value;
    const Lookup lookup = [&](std::string_view name) -> const std::string* {
      const auto found = constants.find(std::string(name));
      return found == constants.end() ? nullptr : &found->second;
    };
    const auto report = [&](const Mark& mark, const std::string& message, const std::string& hint) {
      if (told.emplace(mark.file, mark.line, mark.column, message).second)
        diagnostics.error(mark, message, hint);
    };
    for (const JobFault& fault : step.kinds->job_faults(step, lookup))
      report(place_of(benchmark, step, fault), fault.message, fault.hint);
    if (step.kind != StepKind::run || constants["scheduler"] != "slurm") continue;
    const JobRequests requests = step.kinds->job_requests(step, lookup);
    each_parameter(benchmark, step, [&](const Parameter& parameter) {
      if (!parameter.exported) return;
      const auto fault = variable_fault(parameter.name.value, parameter.value.value, requests);
      if (fault) report(parameter.name.mark, fault->message, fault->hint);
    });
  }
}

}  // namespace tally
