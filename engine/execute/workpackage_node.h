// A workpackage as the engine holds it: kept small, there may be a hundred thousand.
#pragma once

#include <memory>
#include <string>

#include "engine/execute/environment.h"
#include "engine/journal/journal.h"
#include "engine/workpackage/workpackage.h"

namespace tally {

struct WorkpackageNode {
  Workpackage wp;
  std::string directory;  // its folder's name in the run directory
  // What its operations left in the environment, against the engine's own; null when nothing.
  std::unique_ptr<EnvironmentChanges> environment;
  OutputSizes outputs;  // as the journal had them when it was restored
  std::string job_name, job_id;
  int operations_done = 0;
  int attempts = 0;   // begun anew, for whatever reason
  int resubmits = 0;  // of these, because of the scheduler
  bool prepared = false;
};

}  // namespace tally
