// How a platform wants its jobs submitted and followed: parameters that its set `executeset` may
// give, docs/slurm.md.
#pragma once

#include <chrono>
#include <string>

#include "engine/base/status.h"
#include "engine/execute/environment.h"
#include "engine/expand/substitute.h"

namespace tally {

struct JobRules {
  using Milliseconds = std::chrono::milliseconds;
  int in_flight = 1000;               // jobs_in_flight: in the queue at once; 0: no limit
  double per_second = 20;             // submit_rate: beyond a first burst; 0: no limit
  Milliseconds patience{3600000};     // submit_patience: how long a scheduler may be away
  Milliseconds grace{30000};          // status_grace: for an exit status on its way
  Milliseconds pending{0};            // pending_limit: longest wait in the queue; 0: for ever
  Milliseconds slowest_query{30000};  // poll_slowest: between questions to the scheduler
  int resubmits = 2;                  // resubmit: after a lost node or preemption
  std::string environment = default_job_environment;  // job_environment: variables passed on

  static constexpr const char* default_job_environment =
      "HOME USER LOGNAME SHELL PATH LANG LANGUAGE LC_* TZ TERM LD_LIBRARY_PATH MANPATH BASH_ENV "
      "FPATH MODULE* LMOD_* LOADEDMODULES _LMFILES_ _ModuleTable* __Init_Default_Modules "
      "BASH_FUNC_* KRB5CCNAME";
};

// Fails with a sentence that names the parameter.
Status read_job_rules(const Lookup& lookup, JobRules* rules);

// What of the engine's environment a job gets: the variables that `wanted` names (words, `*` as in
// file names; a lone `*` for all). Variables of Slurm's own would change the job: only those that
// are named in full pass, and SLURM_CONF, which says which Slurm it is.
Environment job_environment(const Environment& base, const std::string& wanted);

}  // namespace tally
