// Setup and build steps: one workpackage does the work for all whose inputs are the same, in this
// run and over the runs of one outpath. Decides which works and which takes over, and remembers
// what each left, since that is an input of its children.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "engine/base/status.h"
#include "engine/execute/files/setup_inputs.h"
#include "engine/execute/files/store.h"
#include "engine/workpackage/workpackage.h"

namespace tally {

// What a workpackage left, as its children's inputs name it.
struct Lineage {
  std::string hash;      // of its inputs
  std::string instance;  // of this very work; empty: kept nowhere, so no later run can have it
};

struct ReuseDecision {
  enum class Kind {
    work,       // it does the work
    wait,       // `of` is at it
    same_run,   // `of` has done it
    other_run,  // it lies in `work`
  };
  Kind kind = Kind::work;
  int of = -1;
  std::string work;  // absolute
  std::string why;   // "nothing of this step is kept from earlier runs", "the same as in ..."
};

class SetupReuse {
 public:
  // `outpath`: the folder of the runs, absolute. `fresh`: nothing of earlier runs is taken over.
  SetupReuse(const Benchmark& benchmark, const std::string& outpath, bool fresh)
      : benchmark_(benchmark), store_(outpath), fresh_(fresh) {}

  // Decides for a workpackage before its first command. An error names an input that cannot be
  // read. Asked again after `wait`.
  Status decide(const Workpackage& workpackage, const SetupContext& context,
                ReuseDecision* decision);
  // An earlier engine of this run has seen workpackage `id` through.
  void restore(int id, const std::string& hash, const std::string& instance);
  // It is about to be recorded as ended well, with what it left in `work`: makes its lineage. Null:
  // decide() was never asked of it. `problem`: why its work cannot be kept, for the log.
  const Lineage* ended_well(const Workpackage& workpackage, const std::string& work,
                            std::string* problem);
  // It is recorded: later runs may have its work.
  Status publish(int id);
  // It ended, well or not. Returns those that waited for it: to be decided again.
  std::vector<int> release(int id, bool well);
  // A plan takes it for done; well, with work of its own.
  void assume_done(int id);
  // Null: none of a setup or build step that ended well.
  const Lineage* lineage(int id) const;

 private:
  struct Open {
    StepInputs inputs;
    std::string hash;
    bool keeps = false;  // later runs may have it
    bool works = false;  // it is the one that works
    Lineage of;          // else: what it takes over
    WorkStore::Entry entry;
  };
  struct Work {
    int owner = -1;
    bool done = false;
    std::vector<int> waiters;
  };
  bool add_parents(const Workpackage& workpackage, StepInputs* inputs, std::string* why) const;

  const Benchmark& benchmark_;
  WorkStore store_;
  bool fresh_;
  FileDigests digests_;
  std::map<int, Open> open_;           // by workpackage
  std::map<std::string, Work> works_;  // by hash
  std::map<int, Lineage> lineages_;    // by workpackage
};

// For a dry run: what a run would say of each setup and build workpackage of a plan, by id: "reused,
// the same as in /runs/000000/000000_build/work", "done again, compared with the last kept work: file
// input.txt changed". Nothing is written and no command is run. `outpath`: absolute.
std::map<int, std::string> predict_reuse(const Benchmark& benchmark, const Expander& expander,
                                         const std::vector<Workpackage>& workpackages,
                                         const std::string& outpath, bool fresh,
                                         const std::string& shell);

}  // namespace tally
