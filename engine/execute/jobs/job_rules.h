// Rules for submitting and following the jobs of a platform. The platform's set `executeset` may
// give them as parameters; see docs/slurm.md.
#pragma once

#include <chrono>
#include <string>

#include "engine/base/status.h"
#include "engine/expand/substitute.h"
#include "engine/workspace/environment.h"

namespace tally {

struct JobRules {
  using Milliseconds = std::chrono::milliseconds;
  int in_flight = 1000;            // jobs_in_flight: most jobs in the queue at once; 0: no limit
  double per_second = 20;          // submit_rate: jobs per second after a first burst; 0: no limit
  Milliseconds patience{3600000};  // submit_patience: how long the scheduler may be unreachable
  Milliseconds grace{30000};       // status_grace: how long to wait for an exit status
  Milliseconds pending{0};         // pending_limit: longest wait in the queue; 0: no limit
  Milliseconds slowest_query{30000};  // poll_slowest: longest interval between queries
  int resubmits = 2;                  // resubmit: after a lost node or preemption
  std::string environment = default_job_environment;  // job_environment: variables passed on

  static constexpr const char* default_job_environment =
      "HOME USER LOGNAME SHELL PATH LANG LANGUAGE LC_* TZ TERM LD_LIBRARY_PATH MANPATH BASH_ENV "
      "FPATH MODULE* LMOD_* LOADEDMODULES _LMFILES_ _ModuleTable* __Init_Default_Modules "
      "BASH_FUNC_* KRB5CCNAME";
};

// Fails with a sentence that names the wrong parameter.
Status read_job_rules(const Lookup& lookup, JobRules* rules);

// The part of the engine's environment that a job gets: the variables that `wanted` names. Names
// are separated by spaces; `*` matches as in file names, and a lone `*` means all. Slurm's own
// variables would change the job, so only those that are named in full are passed. SLURM_CONF is
// passed too, because it selects the Slurm installation.
Environment job_environment(const Environment& base, const std::string& wanted);

}  // namespace tally
