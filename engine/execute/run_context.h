// The data that the parts of one call of execute() share: the run, the replaceable parts and the
// settings. It makes no decisions about the order of work.
#pragma once

#include <map>
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
  // Files outside the run to which a substitution appends: the workpackage whose substitution it is.
  std::map<std::string, int> appended_files = {};
};

}  // namespace tally
