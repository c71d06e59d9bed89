// A workpackage in the engine's memory. It is kept small, because there may be a hundred thousand.
#pragma once

#include <memory>
#include <string>

#include "engine/journal/journal.h"
#include "engine/workpackage/workpackage.h"
#include "engine/workspace/environment.h"

namespace tally {

struct WorkpackageNode {
  Workpackage wp;
  std::string directory;  // its folder's name in the run directory
  // The environment changes of its operations, relative to the engine's environment. Null: none.
  std::unique_ptr<EnvironmentChanges> environment;
  OutputSizes outputs;  // as the journal has them
  std::string job_name, job_id;
  int operations_done = 0;
  int attempts = 0;   // started again, for any reason
  int resubmits = 0;  // of these, resubmissions because of the scheduler
  bool prepared = false;
  bool restored = false;  // an earlier engine may have begun it
};

}  // namespace tally
