// The data that the parts of one call of execute() share: the run, the replaceable parts and the
// settings. It makes no decisions about the order of work.
#pragma once

#include <map>
#include <set>
#include <string>

#include "engine/execute/execute.h"
#include "engine/execute/graph.h"
#include "engine/execute/status_line.h"
#include "engine/workspace/environment.h"
#include "engine/workspace/run_log.h"

namespace tally {

struct RunContext {
  Run& run;
  WorkpackageGraph& graph;
  ProcessRunner& processes;
  const Settings& settings;
  const Parts& parts;
  Environment base;            // the engine's own environment
  const Environment own_base;  // for steps of Tally's own kinds
  std::string run_dir;         // absolute
  RunLog& log;
  StatusLine& status_line;
  std::string mark;  // the mark of the run's processes, see left_behind.h
  std::string boot;  // boot_mark()
  bool secrets;      // has_secrets(): its commands may show secrets
  // Files outside the run to which a substitution appends, by their path without links.
  struct Appended {
    int workpackage = 0;    // whose substitution it is
    bool set_back = false;  // after an attempt that failed: nothing of the attempt is in it
  };
  std::map<std::string, Appended> appended_files = {};
  // By workpackage: when its first attempt in this engine began, and its last one that failed.
  struct FailedAttempt {
    std::string why;
    std::set<std::string> placed;  // by its file sets, absolute
  };
  std::map<int, long long> first_begun_ns = {};
  std::map<int, FailedAttempt> failed_attempts = {};
};

}  // namespace tally
