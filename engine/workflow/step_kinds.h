// The additions of kinds of step to a workpackage's values, platform, launch, job and packs. They
// are in steps/. The program passes them to the engine together with the workflow (Step::kinds), so
// that the engine includes nothing of steps/. The engine does know the kinds' names (StepKind in
// workflow.h), and asks them where the order of work depends on the kind: which keys a step may
// have (check/), whether its work is kept and reused (execute/setup_reuse.h), whether it launches a
// program (plan/, execute/), and whether its end makes rows (results/).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/diagnostics.h"
#include "engine/base/status.h"
#include "engine/workflow/job_options.h"
#include "engine/workflow/lookup.h"

namespace tally {

struct Step;

// The place where a run step's program runs, from its platform's parameters:
//   scheduler      local (the default) or the name of a scheduler: slurm, pbs, lsf
//   submit         the command that submits a job script: "sbatch --parsable"
//   submit_script  the job script's name in the work directory
struct Platform {
  std::string scheduler = "local";
  std::string submit;
  std::string submit_script;
  bool local() const { return scheduler == "local"; }
};

// How a run step's workpackages are packed into jobs, with $parameters resolved.
struct PackRule {
  enum class Kind { none, array, steps };
  Kind kind = Kind::none;
  // The largest number of workpackages in one job. Slurm's default limit for arrays is 1000.
  int size = 1000;
  int at_once = 0;  // array: tasks at once, 0: all; steps: members at once, at least 1
  // The resources of one step of the allocation when several run at once. Empty when unknown.
  std::string nodes, tasks_per_node;
  std::optional<double> seconds;  // time limit of one workpackage
  std::string folder;             // of the job pack's script, absolute
};
// A question to the planner of a step's program.
struct PlanRequest {
  // Its file names, the best first and the one that people know last; empty: the step has none that
  // plans.
  std::vector<std::string> programs;
  std::vector<std::string> arguments;  // make it plan and end
  std::string why_not;                 // why it cannot be asked, a clause; else empty
};
// The command that starts a step's program on this machine.
struct LocalLaunch {
  std::string command;  // empty: the step has no program, or it runs in a job
  // The command sets the variables of `env` itself, after its platform's modules and variables.
  bool sets_env = false;
};
struct PackMember {
  std::string directory;                                         // absolute
  std::string script;                                            // its own job script there
  std::vector<std::pair<std::string, std::string>> environment;  // the member's exported parameters
  std::string options;  // script_options() of the script, which say where its output goes
  std::string status_file = "job.status", reason_file = "job.reason";
  std::string functions;  // absolute; what its script sources; empty: nothing
};

constexpr const char* pack_script_name = "pack.job";
// "RUNDIR/pack_000001_train". `first` is the folder name of the pack's first member.
std::string pack_folder(const std::string& run_dir, const std::string& first);
// The time limit of a pack of steps in seconds: the limit of one member times the number of rounds.
std::optional<double> pack_seconds(const PackRule& rule, size_t members);

// Something in a step or its platform that its job script cannot state, or must not, or a name in
// `env` that its commands cannot have.
struct JobFault {
  Mark mark;              // of the step's text; unknown: the fault is in `parameter`
  std::string parameter;  // of the platform's sets, or a built-in name
  std::string message, hint;
  bool constant = true;  // the text has no $parameter
};

// These functions are pure: they touch neither the disk nor a process. The base class is JUBE's
// plain step, to which no kind adds anything.
class StepKinds {
 public:
  virtual ~StepKinds() = default;

  // Names and values from the step's own keys. They hide parameters of the same name. `written`
  // finds the text of a parameter of mode text as the workflow has it, before anything is put in.
  virtual NamedValues values(const Step& step, const Lookup& lookup, const Lookup& written) const;
  // Every name that values() may give, sorted.
  virtual const std::vector<std::string_view>& value_names() const;
  virtual Platform platform_of(const Step& step, const Lookup& lookup) const;
  virtual LocalLaunch local_launch(const Step& step, const Lookup& lookup) const;

  // The outcome that a program reports by this exit code, under the name that `expect:` uses; or
  // empty.
  virtual std::string outcome_of(int exit_code) const;
  // Whether the step takes this outcome as a result.
  virtual bool is_expected(const Step& step, const std::string& outcome,
                           const Lookup& lookup) const;

  // Why the job script of a workpackage cannot be written as it is asked for. Texts whose
  // parameters have no value in `lookup` are not looked at.
  virtual std::vector<JobFault> job_faults(const Step& step, const Lookup& lookup) const;
  // The requests of the step and its platform to the scheduler.
  virtual JobRequests job_requests(const Step& step, const Lookup& lookup) const;

  // The question of a dry run to the program's planner about the step, and the line that it prints
  // of the answer (the planner's standard output); empty when it cannot be read as one.
  virtual PlanRequest plan_request(const Step& step, const Lookup& lookup) const;
  virtual std::string plan_summary(const std::string& answer) const;

  // Says how the step's workpackages share jobs. An error: the step's numbers are not valid.
  virtual Status pack_rule(const Step& step, const Lookup& lookup, PackRule* rule) const;
  // script_options() returns the scheduler options at the head of a job script. common_options()
  // returns those of them that apply to the job as a whole. Workpackages with equal common options
  // share a job.
  virtual std::string script_options(const std::string& script) const;
  virtual std::string common_options(const std::string& options) const;
  virtual PackMember pack_member(const std::string& directory, const std::string& script,
                                 const std::string& options, const NamedValues& environment,
                                 const Lookup& lookup) const;
  // The script of the shared job. It starts the members' own scripts.
  virtual std::string pack_script(const PackRule& rule, const std::string& options,
                                  const std::vector<PackMember>& members) const;
};

// The requests of a step's job: of all its components.
JobRequests requests_of_job(const Step& step, const Lookup& lookup);

// JUBE's plain step only. A workflow uses this if it was given no kinds.
const StepKinds& plain_kinds();

}  // namespace tally
