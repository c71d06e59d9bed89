// A workpackage in the engine's memory. It is kept small, because there may be a hundred thousand.
#pragma once

#include <array>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/diagnostics.h"
#include "engine/execute/turn_order.h"
#include "engine/journal/journal.h"
#include "engine/run/run.h"
#include "engine/workpackage/generator.h"
#include "engine/workpackage/values.h"
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

// The workpackages of a run and their progress, in memory and in the journal. The generator decides
// which workpackages exist.
class WorkpackageGraph : private WorkpackageSink {
 public:
  explicit WorkpackageGraph(Run& run);

  // Loads all workpackages of the journal. In a new run, takes those that a plan has made, or makes
  // the workpackages of the steps without `depend`, and records them in one transaction.
  Status start(bool* restored);
  // Makes the children that are possible now that `workpackage` is done, unless they exist already.
  // Records nothing yet: record() does that in the caller's transaction.
  Status make_children(int workpackage, std::vector<int>* created);
  Status record(const std::vector<int>& created);
  // Changes the state of a workpackage: in memory, in the journal and in the counts. Beside it,
  // only start_anew() and look_again() change a state. (`remove -w` resets workpackages in the
  // journal of a run that nobody executes.)
  Status transition(int id, Outcome outcome);
  // The workpackage begins anew, with nothing of its work. `outputs`: the sizes that its output
  // files had before its first operation.
  Status start_anew(int id, const OutputSizes& outputs);
  // The workpackage runs in memory alone, while it is looked whether it still waits for its
  // done_file. In the journal it waits: an engine that is killed meanwhile has done nothing.
  void look_again(int id);
  // How many workpackages are in this state.
  int count(State state) const { return counts_[static_cast<size_t>(state)]; }

  WorkpackageNode& operator[](int id) { return workpackages_[index_[static_cast<size_t>(id)]]; }
  const WorkpackageNode& operator[](int id) const {
    return workpackages_[index_[static_cast<size_t>(id)]];
  }
  bool has(int id) const {
    return id >= 0 && static_cast<size_t>(id) < index_.size() &&
           index_[static_cast<size_t>(id)] != none;
  }
  // Forgets a workpackage that has not started. It stays among all(), without an id.
  void drop(int id);
  std::deque<WorkpackageNode>& all() { return workpackages_; }
  const std::vector<int>& of_step(int step) const { return by_step_[static_cast<size_t>(step)]; }
  const Step& step_of(const WorkpackageNode& workpackage) const {
    return benchmark_.steps[static_cast<size_t>(workpackage.wp.step)];
  }
  Turn turn_of(const WorkpackageNode& workpackage) { return turns_.of(workpackage.wp); }
  const RunInfo& run() const { return expander_.run(); }

  // Absolute paths. folder() is RUNDIR/directory; work_dir() is its `work` folder, unless the step
  // names another.
  std::string folder(const WorkpackageNode& workpackage) const;
  std::string work_dir(const WorkpackageNode& workpackage) const;
  WorkpackageValues values(const WorkpackageNode& workpackage,
                           const char* status = "RUNNING") const;
  // The definition of each binding of the workpackage, as the journal records it.
  std::vector<std::string> definitions(const WorkpackageNode& workpackage) const;
  // Whether no further workpackage of this step can be created, because every ancestor has ended.
  bool complete(int step) const;

 private:
  static constexpr size_t none = static_cast<size_t>(-1);
  void take(Workpackage&& workpackage) override;
  const Workpackage& at(int id) const override { return (*this)[id].wp; }
  Status restore();
  void keep(WorkpackageNode workpackage);
  void set_state(Workpackage* workpackage, Outcome outcome);

  Run& run_;
  const Benchmark& benchmark_;
  Expander& expander_;
  Journal& journal_;
  const std::string run_dir_;
  std::deque<WorkpackageNode> workpackages_;
  std::vector<size_t> index_;              // by id
  std::array<int, state_count> counts_{};  // of those with an id, by state
  std::vector<std::vector<int>> by_step_;  // ids
  Generator generator_;
  TurnOrder turns_;
  std::vector<int> taken_;  // ids made by the generator since they were last fetched
  bool restored_ = false;
};

}  // namespace tally
