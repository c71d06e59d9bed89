// Workpackages on their way into a job that they share (pack): gathered until the job is full or
// nobody else can come.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "engine/execute/jobs/jobs.h"
#include "engine/execute/task.h"

namespace tally {

class JobPacks {
 public:
  // Takes a workpackage that is ready to be submitted. One that an earlier engine named without
  // hearing its job's id comes back to the pack it was in.
  Status add(Job job, const PackRule& rule, const Task& task);
  // Jobs to be submitted: packs that are full, with `all` every one. Writes the job script of each
  // into a folder of its own, RUNDIR/pack_000001_train.
  Status take(bool all, const std::string& run_dir, std::vector<Job>* jobs);
  // Workpackages that are gathered and not taken.
  std::vector<int> members() const;

 private:
  struct Member {
    Job job;
    PackMember in_script;
  };
  struct Pack {
    const StepKinds* kinds = &plain_kinds();
    PackRule rule;
    std::string options;
    bool named = false;  // by an earlier engine
    std::vector<Member> members;
  };
  static Status make_job(Pack pack, const std::string& run_dir, std::vector<Job>* jobs);

  // By step, what the scripts ask of the scheduler and what is in their environment; or by name.
  std::map<std::pair<int, std::string>, Pack> open_;
};

}  // namespace tally
