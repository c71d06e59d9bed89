// Setup and build steps. One workpackage does the work for all workpackages with the same inputs,
// in this run and across the runs of one outpath. This class decides which workpackage works and
// which reuse, and remembers the result of each, because it is an input of the children.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "engine/base/status.h"
#include "engine/plan/planned_run.h"
#include "engine/workpackage/workpackage.h"
#include "engine/workspace/setup_inputs.h"
#include "engine/workspace/store.h"

namespace tally {

// The result of a workpackage, as the inputs of its children name it.
struct Lineage {
  std::string hash;      // of its inputs
  std::string instance;  // of this piece of work; empty: not kept, so later runs cannot reuse it
};

struct ReuseDecision {
  enum class Kind {
    work,       // it does the work
    wait,       // `of` is doing it
    same_run,   // `of` has done it
    other_run,  // the work is in the folder `work`
  };
  Kind kind = Kind::work;
  int of = -1;
  std::string work;  // absolute
  std::string why;   // "nothing of this step is kept from earlier runs", "the same as in ..."
};

class SetupReuse {
 public:
  // `outpath`: the absolute path of the folder that holds the runs. `fresh`: nothing from earlier
  // runs is reused.
  SetupReuse(const Benchmark& benchmark, const std::string& outpath, bool fresh)
      : benchmark_(benchmark), store_(outpath), fresh_(fresh) {}

  // Decides for a workpackage before its first command. Called again after `wait`. An error names
  // an input that cannot be read.
  Status decide(const Workpackage& workpackage, const SetupContext& context,
                ReuseDecision* decision);
  // Restores a workpackage `id` that an earlier engine of this run completed.
  void restore(int id, const std::string& hash, const std::string& instance);
  // Called before a workpackage is recorded as successful, with the result in `work`. Makes its
  // lineage. Null: decide() was never called for it. `problem`: why its work cannot be kept, for
  // the log.
  const Lineage* ended_well(const Workpackage& workpackage, const std::string& work,
                            std::string* problem);
  // Called once it is recorded. Makes its work available to later runs.
  Status publish(int id);
  // Called when a workpackage ended, successfully or not. Returns those that waited for it;
  // decide() must be called again for them.
  std::vector<int> release(int id, bool well);
  // Treats the workpackage as successful, with work of its own. Used by a plan.
  void assume_done(int id);
  // Null unless it is a workpackage of a setup or build step and was successful.
  const Lineage* lineage(int id) const;

 private:
  struct Open {
    StepInputs inputs;
    std::string hash;
    bool keeps = false;  // later runs may reuse it
    bool works = false;  // this workpackage does the work
    Lineage of;          // otherwise: the work that it reuses
    WorkStore::Entry entry;
  };
  struct Work {
    int owner = -1;
    bool done = false;
    std::vector<int> waiters;
  };
  bool add_parents(const Workpackage& workpackage, StepInputs* inputs, std::string* why) const;
  void say_once(const StepInputs& inputs, std::string* why);

  const Benchmark& benchmark_;
  WorkStore store_;
  bool fresh_;
  FileDigests digests_;
  std::set<std::string> told_;
  std::map<int, Open> open_;           // by workpackage
  std::map<std::string, Work> works_;  // by hash
  std::map<int, Lineage> lineages_;    // by workpackage
};

// Predicts what a run would report for each setup and build workpackage of a plan, by
// id: "reused, the same as in /runs/000000/000000_build/work", "done again, compared with the last
// kept work: file input.txt changed". It writes nothing and runs no command.
std::map<int, std::string> predict_reuse(PlannedRun& planned, const Settings& settings);

}  // namespace tally
