#include "engine/execute/jobs/job_rules.h"

#include <fnmatch.h>

#include <cstdlib>
#include <vector>

#include "engine/base/duration.h"
#include "engine/base/text.h"

namespace tally {
namespace {

Status wrong(const char* name, const std::string& value, const char* expected) {
  return Status::error(std::string(name) + " \"" + value + "\" is not " + expected);
}

Status read_duration(const Lookup& lookup, const char* name, std::chrono::milliseconds* into) {
  const std::string value = stripped_value(lookup, name);
  if (value.empty()) return Status::ok();
  const auto seconds = parse_duration(value);
  if (!seconds) return wrong(name, value, "a duration; write it as 90s, 10m or 01:30:00");
  *into = std::chrono::milliseconds(static_cast<long long>(*seconds * 1000));
  return Status::ok();
}

Status read_rule(const Lookup& lookup, const char* name, double* into) {
  const std::string value = stripped_value(lookup, name);
  if (value.empty()) return Status::ok();
  char* end = nullptr;
  const double number = strtod(value.c_str(), &end);
  if (*end != '\0' || !(number >= 0)) return wrong(name, value, "a number from 0 on");
  *into = number;
  return Status::ok();
}

Status read_count(const Lookup& lookup, const char* name, int* into) {
  double number = *into;
  Status status = read_rule(lookup, name, &number);
  if (status && (number > 1e9 || number != static_cast<int>(number))) {
    return wrong(name, stripped_value(lookup, name), "a whole number from 0 on");
  }
  *into = static_cast<int>(number);
  return status;
}

bool of_slurm(const std::string& name) {
  for (const char* prefix : {"SLURM_", "SBATCH_", "SRUN_", "SALLOC_", "SQUEUE_", "SACCT_", "PMI_",
                             "PMIX_", "OMPI_COMM_WORLD_"}) {
    if (starts_with(name, prefix)) return true;
  }
  return false;
}

}  // namespace

Status read_job_rules(const Lookup& lookup, JobRules* rules) {
  TRY(read_count(lookup, "jobs_in_flight", &rules->in_flight));
  TRY(read_rule(lookup, "submit_rate", &rules->per_second));
  TRY(read_count(lookup, "resubmit", &rules->resubmits));
  const std::pair<const char*, std::chrono::milliseconds*> durations[] = {
      {"submit_patience", &rules->patience},
      {"status_grace", &rules->grace},
      {"pending_limit", &rules->pending},
      {"poll_slowest", &rules->slowest_query}};
  for (const auto& [name, into] : durations) {
    TRY(read_duration(lookup, name, into));
  }
  if (std::string wanted = stripped_value(lookup, "job_environment"); !wanted.empty()) {
    rules->environment = std::move(wanted);
  }
  return Status::ok();
}

Environment job_environment(const Environment& base, const std::string& wanted) {
  std::vector<std::string> patterns{"SLURM_CONF"};
  std::string words = wanted;
  for (char& c : words) {
    if (c == ',' || c == '\n' || c == '\t') c = ' ';
  }
  for (std::string& word : split_strip(words, " ")) {
    if (!word.empty()) patterns.push_back(std::move(word));
  }
  Environment passed;
  for (const auto& [name, value] : base) {
    const bool slurms = of_slurm(name);
    for (const std::string& pattern : patterns) {
      if (slurms ? pattern == name : fnmatch(pattern.c_str(), name.c_str(), 0) == 0) {
        passed[name] = value;
        break;
      }
    }
  }
  return passed;
}

}  // namespace tally
