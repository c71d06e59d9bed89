// What the engine knows of kinds of step: one interface. The kinds themselves are in steps/. The
// program gives them to the engine with the workflow (Step::kinds): nothing here names them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/workflow/lookup.h"

namespace tally {

struct Step;

// Where a run step goes, from its platform's parameters:
//   scheduler      local (the default) or the name of a scheduler: slurm
//   submit         the command that takes a job script: "sbatch --parsable"
//   submit_script  the job script's name in the work directory
struct Platform {
  std::string scheduler = "local";
  std::string submit;
  std::string submit_script;
  bool local() const { return scheduler == "local"; }
};

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
struct PackMember {
  std::string directory;                                         // absolute
  std::string script;                                            // its own job script there
  std::vector<std::pair<std::string, std::string>> environment;  // its exported parameters
  std::string options;  // script_options() of its script: where its output goes
  std::string status_file = "job.status", reason_file = "job.reason";
};

constexpr const char* pack_script_name = "pack.job";
// "RUNDIR/pack_000001_train", of its first member's folder.
std::string pack_folder(const std::string& run_dir, const std::string& first);
// The time limit of a pack of steps, in seconds: rounds times the members'.
std::optional<double> pack_seconds(const PackRule& rule, size_t members);

// Pure: nothing touches the disk or a process. As it stands here it is JUBE's plain step, to which
// no kind adds anything.
class StepKinds {
 public:
  virtual ~StepKinds() = default;

  // Names and values that a step's own keys put before the parameters of the same name.
  virtual NamedValues values(const Step& step, const Lookup& lookup) const;
  virtual Platform platform_of(const Step& step, const Lookup& lookup) const;
  // The command that starts a step's program on this machine; empty: it has none, or it goes into a
  // job.
  virtual std::string local_launch(const Step& step, const Lookup& lookup) const;

  // The name of an outcome that a program tells by its exit code, as `expect:` has it; or empty.
  virtual std::string outcome_of(int exit_code) const;
  // Whether the step takes this outcome as a result.
  virtual bool is_expected(const Step& step, const std::string& outcome,
                           const Lookup& lookup) const;

  // How its workpackages share jobs. False, with a sentence, when the step's numbers are none.
  virtual bool pack_rule(const Step& step, const Lookup& lookup, PackRule* rule,
                         std::string* error) const;
  // The scheduler's options at the head of a job script, and those among them that are for the job
  // as a whole: workpackages with equal ones go into one job.
  virtual std::string script_options(const std::string& script) const;
  virtual std::string common_options(const std::string& options) const;
  virtual PackMember pack_member(const std::string& directory, const std::string& script,
                                 const std::string& options, const NamedValues& environment,
                                 const Lookup& lookup) const;
  // The script of the job that starts the members' own scripts.
  virtual std::string pack_script(const PackRule& rule, const std::string& options,
                                  const std::vector<PackMember>& members) const;
};

// JUBE's plain step alone: what a workflow has that was given no kinds.
const StepKinds& plain_kinds();

}  // namespace tally
