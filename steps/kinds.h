// What the four kinds of step add to JUBE's step. Pure: nothing here touches the disk or a process.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "engine/expand/substitute.h"
#include "engine/workflow/step_kinds.h"
#include "engine/workflow/workflow.h"

namespace tally {

// Names and values that a step's own keys put before the parameters of the same name, so that a
// platform's job template (templates/) finds them whether they come from `resources:` or, in JUBE's
// way, from a parameter set called systemParameter:
//   resources  nodes, taskspernode, threadspertask, gpuspernode, timelimit, queue, account, memory,
//              tasks (nodes x taskspernode, when both are numbers), cpuspernode (taskspernode x
//              threadspertask), timelimit_seconds, timelimit_minutes
//   launch     launch (the program's command line), starter and args_starter stay the platform's
//   container  container (the command that puts the program into its image, or empty)
//   options    scheduler_options (lines of a job script, in the form of the platform's option_line)
//   modules    modules ("module load a b", or empty)
//   env        env ("export A='x'" lines and "unset B" lines for a job script)
std::vector<std::pair<std::string, std::string>> kind_values(const Step& step,
                                                             const Lookup& lookup);

//   job files  with `work_dir`: submit_script, stdoutlogfile, stderrlogfile, status_file,
//   done_file,
//              error_file, reason_file and job_functions, absolute: a workpackage's own
//   job lines  job_begin, modules_begin, modules_end, launch_line (of job scripts that source
//              job_functions)

// Where a run step goes, from its platform's parameters.
Platform platform_of(const Step& step, const Lookup& lookup);

// The workpackage's own work folder, absolute, from jube_benchmark_rundir and jube_wp_padid; its
// operations run there unless the step has a work_dir.
std::string own_folder(const Step& step, const Lookup& lookup);

// The command by which a run step starts its program here: the platform's starter with its
// arguments, then launch. Empty when the step has no launch or its platform submits jobs.
std::string local_launch(const Step& step, const Lookup& lookup);

// Outcomes that tally-train tells by its exit code, as `expect:` names them: 3 "oom", 4 "timeout",
// 5 "check"; empty for other codes.
std::string outcome_of(int exit_code);
// Whether the step takes this outcome as a result.
bool is_expected(const Step& step, const std::string& outcome, const Lookup& lookup);

// All of this folder, packs too, as the engine asks for it. The program gives it to the engine.
const StepKinds& step_kinds();

}  // namespace tally
