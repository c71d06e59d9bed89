// Setup and build steps of a run: what setup_reuse.h decides is carried out here, with links in the
// place of work, lines in run.log and rows in the journal.
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
        reuse_(context.benchmark, absolute_path(context.run_dir + "/.."), context.options.fresh) {}

  // Those that earlier engines of this run have seen through.
  Status restore();

  enum class Next {
    work,   // the task does its work
    wait,   // another workpackage is at the same work: asked again when that one has ended
    ended,  // it took finished work over, or failed to
  };
  // Before the first command of a task. Of steps of other kinds always `work`.
  Next decide(Task& task);

  // It ends well: its lineage goes into the journal, in the caller's transaction.
  Status record(int id);
  // That is recorded: later runs may have its work.
  void publish(int id);
  // It ended, well or not. Returns those that waited for it.
  std::vector<int> release(int id, bool well) { return reuse_.release(id, well); }

 private:
  Next take_over(Task& task, const ReuseDecision& decision);
  bool link_to_work(Task& task, const std::string& target, const std::string& of);

  RunContext& context_;
  SetupReuse reuse_;
};

}  // namespace tally
