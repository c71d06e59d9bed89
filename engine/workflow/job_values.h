// Values that a scheduler records of each job. Tables may show them as columns.
#pragma once

#include <string>
#include <vector>

#include "engine/workflow/workflow.h"

namespace tally {

struct JobValue {
  const char* name;
  ValueType type;
  const char* unit;
  const char* missing;  // why a complete record does not have it, a clause
};

// job_id, job_nodes, job_elapsed, job_energy, job_max_rss
const std::vector<JobValue>& job_values();
// Null for any other name, in JUBE's own files, and where a parameter or pattern has this name.
const JobValue* job_value(const Benchmark& benchmark, const std::string& name);

}  // namespace tally
