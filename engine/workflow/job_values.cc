#include "engine/workflow/job_values.h"

#include <algorithm>

namespace tally {
namespace {

bool is_defined(const Benchmark& benchmark, const std::string& name) {
  const auto named = [&](const auto& one) { return one.name.value == name; };
  return std::any_of(benchmark.parameter_sets.begin(), benchmark.parameter_sets.end(),
                     [&](const auto& entry) {
                       const auto& list = entry.second.parameters;
                       return std::any_of(list.begin(), list.end(), named);
                     }) ||
         std::any_of(benchmark.pattern_sets.begin(), benchmark.pattern_sets.end(),
                     [&](const auto& entry) {
                       const auto& list = entry.second.patterns;
                       return std::any_of(list.begin(), list.end(), named);
                     });
}

}  // namespace

const std::vector<JobValue>& job_values() {
  static const std::vector<JobValue> values = {
      {"job_id", ValueType::string, "", ""},
      {"job_nodes", ValueType::string, "", "the scheduler did not say on which nodes it ran"},
      {"job_elapsed", ValueType::integer, "s", "the scheduler did not say how long it ran"},
      {"job_energy", ValueType::integer, "J",
       "Slurm measures no energy here (AcctGatherEnergyType)"},
      {"job_max_rss", ValueType::floating, "MiB",
       "Slurm gathers no memory use here (JobAcctGatherType)"},
  };
  return values;
}

const JobValue* job_value(const Benchmark& benchmark, const std::string& name) {
  if (!benchmark.rules.own_columns) return nullptr;
  for (const JobValue& value : job_values()) {
    if (value.name == name) return is_defined(benchmark, name) ? nullptr : &value;
  }
  return nullptr;
}

}  // namespace tally
