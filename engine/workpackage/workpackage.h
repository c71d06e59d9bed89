// One step at one point: the unit that is run, recorded in the journal and reported.
#pragma once

#include <string>
#include <vector>

#include "engine/base/compact.h"
#include "engine/expand/point.h"
#include "engine/workflow/workflow.h"
#include "engine/workpackage/outcome.h"

namespace tally {

struct Workpackage {
  int id = 0;    // JUBE's jube_wp_id
  int step = 0;  // index into Benchmark::steps
  Point point;
  std::vector<int> parents;  // workpackage ids, in the order of the step's `depend`
  int iteration = 0;
  int repetition = 0;  // round of the step's `repeat`, from 0; all points run in each round
  int cycle = 0;
  Outcome outcome;  // its state, and how it came to that state
  RareText doubt;   // plan only: why a run fails it, unless an earlier step makes what is missing
  // Its folder's name in the run directory, if it is not the default (folder_name_of()).
  RareText directory;
  // The folder in which its operations run, if not directory/work. An absolute path.
  RareText work_dir;
};

// "000003_step" or "000003_step_suffix".
std::string workpackage_directory_name(int id, const std::string& step, const std::string& suffix);
// The name of a workpackage's folder in the run directory.
std::string folder_name_of(const Benchmark& benchmark, const Workpackage& workpackage);
// The folder in which its operations run: its work_dir, or else RUNDIR/directory/work with RUNDIR
// as the user wrote it.
std::string work_dir_of(const Benchmark& benchmark, const std::string& run_dir,
                        const Workpackage& workpackage);

}  // namespace tally
