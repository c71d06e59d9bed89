// Many workpackages in one job: an array of jobs, or steps of one allocation. Pure: texts in, texts
// out.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/expand/substitute.h"
#include "engine/workflow/workflow.h"

namespace tally {

// How a run step's workpackages are packed, its $parameters known.
struct PackRule {
  enum class Kind { none, array, steps };
  Kind kind = Kind::none;
  int size =
      1000;  // workpackages of one job at most: Slurm takes arrays of 1000 unless told otherwise
  int at_once = 0;  // array: tasks that may run at once, 0: all; steps: side by side, at least 1
  // What a step of an allocation is given when several run side by side; empty: not known.
  std::string nodes, tasks_per_node, gpus_per_node;
  std::optional<double> seconds;  // time limit of one workpackage
};
// Fails with a sentence when size or at_once is not a whole number of at least 1.
bool pack_rule(const Step& step, const Lookup& lookup, PackRule* rule, std::string* error);

// The scheduler's options at the head of a job script.
std::string script_options(const std::string& script);
// Those that are for the job as a whole, not for one member's output: workpackages with equal ones
// go into one job.
std::string common_options(const std::string& options);

struct PackMember {
  std::string directory;                                         // absolute
  std::string script;                                            // its own job script there
  std::vector<std::pair<std::string, std::string>> environment;  // its exported parameters
  std::string options;  // script_options() of its script: where its output goes
  std::string status_file = "job.status", reason_file = "job.reason";
};
PackMember pack_member(const std::string& directory, const std::string& script,
                       const std::string& options,
                       const std::vector<std::pair<std::string, std::string>>& environment,
                       const Lookup& lookup);
// The script of the job that starts the members' own scripts, each in its own directory with its
// own output, and lets none of them suffer from another's end. `options`: common_options() of the
// members' scripts. In an allocation the members run `at_once` side by side, the time limit is that
// of as many rounds, and what the scheduler gives a node grows with at_once.
std::string pack_script(const PackRule& rule, const std::string& options,
                        const std::vector<PackMember>& members);
// The time limit of a pack of steps, in seconds: rounds times the members'.
std::optional<double> pack_seconds(const PackRule& rule, size_t members);

constexpr const char* pack_script_name = "pack.job";
// "RUNDIR/pack_000001_train", of its first member's folder.
std::string pack_folder(const std::string& run_dir, const std::string& first);

}  // namespace tally
