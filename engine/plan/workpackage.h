// One step at one point: the unit that is run, journalled and reported.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/expand/point.h"

namespace tally {

enum class State {
  pending,  // created, not started
  running,  // a command runs, or its job is queued or runs
  waiting,  // JUBE's done_file is not there yet: asked again by `continue`
  done,
  failed,
  expected,  // ended in an outcome that its step's `expect` names (out of memory, time limit): a
             // result
  lost,      // its fate cannot be established; fails the run, never a success
};
const char* state_name(State state);
// done or expected: its children may be created and it has a row in the table.
inline bool finished_well(State s) {
  return s == State::done || s == State::expected;
}

struct WorkPackage {
  int id = 0;    // JUBE's jube_wp_id
  int step = 0;  // index into Benchmark::steps
  Point point;
  std::vector<int> parents;  // workpackage ids, in the order of the step's `depend`
  int iteration = 0;
  int repetition = 0;  // of a step's `repeat`, from 0; all points run once before any runs again
  int cycle = 0;
  State state = State::pending;
  std::string note;  // why failed, in one sentence
};

}  // namespace tally
