// The settings that the command line and the environment give, as far as several commands share
// them. The parser fills the one object; everything else reads it. How an input is read (--tag,
// --set) is in InputArgs (input.h), what one command alone takes in the struct of its arguments
// (cli/commands.h).
#pragma once

#include <string>
#include <vector>

#include "engine/base/diagnostics.h"
#include "engine/expand/point.h"
#include "engine/workflow/step_kinds.h"

namespace tally {

struct Settings {
  // --- of every command
  std::string program = "tally";  // the name it was called by, for hints
  // The command line's first word, for commands that are offered: they work when they are pasted.
  std::string command = "tally";
  bool called_as_jube = false;  // by the program's name: JUBE's exit codes, tables only with -r
  // 1: prints a line for each workpackage that ended, and every workpackage of a plan. 2: also
  // prints the output of commands.
  int verbose = 0;
  bool quiet = false;  // only tables and failures
  bool strict = false;
  bool no_exec = false;  // nothing that an input or a run names may be executed
  // automatic: in colour if the output is a terminal and NO_COLOR is not set.
  enum class Color { automatic, always, never } color = Color::automatic;
  // The folder of the program, which also holds tally-train. PATH of steps of Tally's own kinds
  // ends with it. Empty: unknown.
  std::string programs;
  std::string shell = "/bin/sh";  // of the commands of steps and parameters
  // Takes problems in place of standard error. Not owned; null: they are printed.
  std::vector<Problem>* problems = nullptr;
  size_t max_workpackages = most_points;  // of a step
  // The kinds of steps that workflows may have.
  const StepKinds* kinds = &plain_kinds();

  // --- of the execution of a run: run, continue, watch
  int jobs = 1;                // -j: workpackages at once
  bool exit_on_error = false;  // -e
  bool hide_animation = false;
  bool fresh = false;  // setup and build steps reuse nothing from earlier runs
  bool wait_for_jobs = true;
  bool analyse = false, result = false;  // -a, -r: at the end
};

}  // namespace tally
