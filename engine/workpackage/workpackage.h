// One step at one point: the unit that is run, journalled and reported.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/base/rare_text.h"
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
  int repetition = 0;  // of a step's `repeat`, from 0; all points run once before any runs again
  int cycle = 0;
  Outcome outcome;  // its state, and how it came to that
  RareText doubt;   // of a plan: why a run fails it, unless an earlier step makes what is missing
  // Its folder's name in the run directory where that is not the default one (directory_of()).
  RareText directory;
  // Where its operations run when that is not directory/work; absolute.
  RareText work_dir;
};

// 7 -> "000007".
std::string padded_id(int id);
// "000003_step" or "000003_step_suffix".
std::string workpackage_directory_name(int id, const std::string& step, const std::string& suffix);
// The name of a workpackage's folder in the run directory.
std::string directory_of(const Benchmark& benchmark, const Workpackage& workpackage);
// Where its operations run: RUNDIR/directory/work, as the user wrote RUNDIR, or its work_dir.
std::string work_dir_of(const Benchmark& benchmark, const std::string& run_dir,
                        const Workpackage& workpackage);

}  // namespace tally
