// Carries out the decisions of setup_reuse.h for the setup and build steps of a run: links to
// finished work, lines in run.log and rows in the journal.
#pragma once

#include <string>
#include <vector>

#include "engine/base/files.h"
#include "engine/base/status.h"
#include "engine/execute/run_context.h"
#include "engine/execute/setup_reuse.h"
#include "engine/execute/task.h"

namespace tally {

class SetupSharing {
 public:
  explicit SetupSharing(RunContext& context)
      : context_(context),
        reuse_(context.run.benchmark(), absolute_path(context.run_dir + "/.."),
               context.settings.fresh) {}

  // Restores the workpackages that earlier engines of this run completed.
  Status restore();

  enum class Next {
    work,   // the task does its work
    wait,   // another workpackage does the same work; decide() is called again when it has ended
    ended,  // it reused finished work, or failed to
  };
  // Called before the first command of a task. Returns `work` for steps of other kinds.
  Next decide(Task& task);

  // Called when a workpackage succeeds. Writes its lineage to the journal in the caller's
  // transaction.
  Status record(int id);
  // Called once that is recorded. Makes the work available to later runs.
  void publish(int id);
  // Called when a workpackage ended, successfully or not. Returns those that waited for it.
  std::vector<int> release(int id, bool well) { return reuse_.release(id, well); }

 private:
  Next take_over(Task& task, const ReuseDecision& decision);
  bool link_to_work(Task& task, const std::string& target, const std::string& of);

  RunContext& context_;
  SetupReuse reuse_;
};

}  // namespace tally
