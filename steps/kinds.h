// The additions of the four kinds of steps to JUBE's step. Pure functions: nothing here touches the
// disk or a process.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/expand/substitute.h"
#include "engine/workflow/step_kinds.h"
#include "engine/workflow/workflow.h"

namespace tally {

// Names and values from a step's own keys. They take precedence over parameters of the same name. A
// platform's job template (templates/) therefore finds them whether they come from `resources:` or,
// as in JUBE, from a parameter set called systemParameter:
//   resources  nodes, taskspernode, threadspertask, gpuspernode, timelimit, queue, account, memory,
//              tasks (nodes x taskspernode, when both are numbers), cpuspernode (taskspernode x
//              threadspertask), timelimit_seconds, timelimit_minutes
//   launch     launch (the program's command line), starter and args_starter stay the platform's
//   container  container (the command that puts the program into its image, or empty)
//   options    scheduler_options and site_options, the step's and its platform's (lines of a job
//              script, in the form of the platform's option_line)
//   modules    modules ("module load a b", or empty)
//   env        env ("export A='x'" lines and "unset B" lines for a job script). Where the platform's
//              own `env` is written with $jube_wp_envstr, the lines of exported parameters are there
//   job files  only with `work_dir`: submit_script, stdoutlogfile, stderrlogfile, status_file,
//              done_file, error_file, reason_file and job_functions, as absolute paths in the
//              workpackage's own folder
//   words      job_name_word, queue_word, account_word, memory_word, gpus_word, hint_word,
//              signal_word, stdout_word, stderr_word: values as the scheduler's directives state
//              them, with quotes where it needs them
//   job lines  job_begin, modules_begin, modules_end, launch_line, tmp_word, cache_word (for job scripts that source
//              job_functions)
// `written`, if given, finds a parameter's text as the workflow has it (StepKinds::values).
std::vector<std::pair<std::string, std::string>> kind_values(const Step& step, const Lookup& lookup,
                                                             const Lookup& written = {});
// The names of exported parameters, from jube_wp_envlist.
std::vector<std::string> exported_names(const Lookup& lookup);
// All these names, sorted.
const std::vector<std::string_view>& step_value_names();

// The platform of a run step, from the platform's parameters.
Platform platform_of(const Step& step, const Lookup& lookup);

// The absolute path of the workpackage's own work folder, from jube_benchmark_rundir and
// jube_wp_padid. Its operations run there unless the step has a work_dir.
std::string own_folder(const Step& step, const Lookup& lookup);

// The command with which a run step starts its program without a scheduler: the platform's starter
// with its arguments, then launch. Empty when the step has no launch or its platform submits jobs.
LocalLaunch local_launch(const Step& step, const Lookup& lookup);

// The outcome for an exit code of tally-train, as `expect:` names it: 3 "oom", 4 "timeout", 5
// "check". Empty for other codes.
std::string outcome_of(int exit_code);
// Whether the step accepts this outcome as a result.
bool is_expected(const Step& step, const std::string& outcome, const Lookup& lookup);

// The engine's interface to this folder, including packs. The program passes it to the engine.
const StepKinds& step_kinds();

}  // namespace tally
