// Workpackages that wait to share a job (pack). They are gathered until the job is full or no other
// workpackage can join.
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
  // Adds a workpackage that is ready to be submitted. If an earlier engine recorded its job's name
  // but not the job's id, it returns to the same pack.
  Status add(Job job, const PackRule& rule, const Task& task);
  // Returns the jobs to submit: the packs that are full, or every pack with `all`. Writes the job
  // script of each into a folder of its own, such as RUNDIR/pack_000001_train.
  Status take(bool all, const std::string& run_dir, std::vector<Job>* jobs);
  // Workpackages that are gathered and not yet returned by take().
  std::vector<int> members() const;

 private:
  struct Member {
    Job job;
    PackMember in_script;
    bool secret = false;
  };
  struct Pack {
    const StepKinds* kinds = &plain_kinds();
    PackRule rule;
    std::string options;
    bool named = false;  // an earlier engine recorded the name
    std::vector<Member> members;
  };
  static Status make_job(Pack pack, const std::string& run_dir, std::vector<Job>* jobs);

  // The key is the step and a text. The text is the recorded name of the job, or else its scheduler
  // options and the environment of its scripts.
  std::map<std::pair<int, std::string>, Pack> open_;
};

}  // namespace tally
