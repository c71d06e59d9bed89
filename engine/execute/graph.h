// The workpackages of a run and their progress, in memory and in the journal. The generator decides
// which workpackages exist.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "engine/base/diagnostics.h"
#include "engine/execute/workpackage_node.h"
#include "engine/expand/expand.h"
#include "engine/workflow/workflow.h"
#include "engine/workpackage/generator.h"
#include "engine/workpackage/values.h"

namespace tally {

class WorkpackageGraph : private WorkpackageSink {
 public:
  WorkpackageGraph(const Benchmark& benchmark, Expander& expander, TextPool& pool,
                   Journal& journal);

  // Loads all workpackages of the journal. In a new run, makes the workpackages of the steps
  // without `depend` and records them in one transaction.
  Status start(bool* restored);
  // Makes the children that are possible now that `workpackage` is done, unless they exist already.
  // Records nothing yet: record() does that in the caller's transaction.
  Status make_children(int workpackage, std::vector<int>* created);
  Status record(const std::vector<int>& created);
  // Sets the outcome in memory and in the journal.
  Status set_outcome(int id, Outcome outcome);

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
  const RunInfo& run() const { return expander_.run(); }

  // folder() is RUNDIR/directory, written as the user would write it. work_dir() is its `work`
  // folder, unless the step names another.
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

  const Benchmark& benchmark_;
  Expander& expander_;
  TextPool& pool_;
  Journal& journal_;
  std::deque<WorkpackageNode> workpackages_;
  std::vector<size_t> index_;              // by id
  std::vector<std::vector<int>> by_step_;  // ids
  Generator generator_;
  std::vector<int> taken_;  // ids made by the generator since they were last fetched
  bool restored_ = false;
};

}  // namespace tally
