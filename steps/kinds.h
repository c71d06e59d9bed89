// The additions of the four kinds of steps to JUBE's step, behind the engine's interface. Pure
// functions: nothing here touches the disk or a process.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/expand/substitute.h"
#include "engine/workflow/step_kinds.h"
#include "engine/workflow/workflow.h"

namespace tally {

// StepKinds says what each function is for. Comments here are about what Tally's kinds make of it.
class TallyKinds : public StepKinds {
 public:
  // Names and values from a step's own keys. They take precedence over parameters of the same name.
  // A platform's job template (templates/) therefore finds them whether they come from `resources:`
  // or, as in JUBE, from a parameter set called systemParameter. value_names() lists them by what
  // they come from. Worth knowing of some:
  //   tasks      nodes x taskspernode, when both are numbers
  //   launch     the program's command line; starter and args_starter stay the platform's
  //   options    scheduler_options and site_options: lines of a job script, the step's and its
  //              platform's, in the form of the platform's option_line
  //   env        "export A='x'" lines and "unset B" lines for a job script. Where the platform's
  //   own
  //              `env` is written with $jube_wp_envstr, the lines of exported parameters are there
  //   job files  submit_script, status_file and the like, only with `work_dir`: absolute paths in
  //   the
  //              workpackage's own folder
  //   *_word     values as the scheduler's directives state them, with quotes where it needs them
  //   job lines  job_begin, launch_line and the like, for job scripts that source job_functions
  NamedValues values(const Step& step, const Lookup& lookup, const Lookup& written) const override;
  const std::vector<std::string_view>& value_names() const override;
  Platform platform_of(const Step& step, const Lookup& lookup) const override;
  // The platform's starter with its arguments, then launch. Empty when the step has no launch or
  // its platform submits jobs.
  LocalLaunch local_launch(const Step& step, const Lookup& lookup) const override;
  // The outcomes of tally-train: 3 "oom", 4 "timeout", 5 "check". Empty for other codes.
  std::string outcome_of(int exit_code) const override;
  bool is_expected(const Step& step, const std::string& outcome,
                   const Lookup& lookup) const override;

  // In job_faults.cc.
  std::vector<JobFault> job_faults(const Step& step, const Lookup& lookup) const override;
  JobRequests job_requests(const Step& step, const Lookup& lookup) const override;

  // In training_plan.cc: what a dry run asks of `tally-train --plan`, and what it makes of the
  // answer.
  //
  // The plan that a run step's `launch` needs when its program is tally-train that trains: its
  // flags, the step's GPUs (nodes x gpuspernode), and the parameter plan_device where it has a
  // value. Parameters that only a run knows, and words that only a shell could expand, give a
  // `why_not`.
  PlanRequest plan_request(const Step& step, const Lookup& lookup) const override;
  // One line of a plan in JSON (docs/planner.md): parameters, layout, memory of a GPU, whether it
  // fits, bubble, the smallest number of nodes. Empty when `json` is not a plan.
  std::string plan_summary(const std::string& json) const override;

  // In pack.cc: many workpackages in one job, as an array of jobs or as steps of one allocation.
  //
  // Fails with a sentence when size or at_once is not a whole number of at least 1.
  Status pack_rule(const Step& step, const Lookup& lookup, PackRule* rule) const override;
  std::string script_options(const std::string& script) const override;
  std::string common_options(const std::string& options) const override;
  PackMember pack_member(const std::string& directory, const std::string& script,
                         const std::string& options, const NamedValues& environment,
                         const Lookup& lookup) const override;
  // Returns the script of the job. It starts each member's own script in the member's directory
  // with the member's output files. The end of one member does not affect the others. `options`:
  // common_options() of the members' scripts. In an allocation `at_once` members run side by side.
  // The time limit is multiplied by the number of rounds, and the resources that the scheduler
  // gives for a node grow with at_once.
  std::string pack_script(const PackRule& rule, const std::string& options,
                          const std::vector<PackMember>& members) const override;
};

// The one object of the class. The program passes it to the engine.
const TallyKinds& step_kinds();

// The names of exported parameters, from jube_wp_envlist.
std::vector<std::string> exported_names(const Lookup& lookup);
// The absolute path of the workpackage's own work folder, from jube_benchmark_rundir and
// jube_wp_padid. Its operations run there unless the step has a work_dir.
std::string own_folder(const Step& step, const Lookup& lookup);

}  // namespace tally
