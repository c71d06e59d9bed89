// Which parents a child has and how iterations are counted: the rules by which both the plan and a
// run make workpackages.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "engine/base/status.h"
#include "engine/expand/substitute.h"
#include "engine/workflow/workflow.h"

namespace tally {

// How many workpackages a step makes of each of its points.
struct Copies {
  int iterations = 1;  // JUBE's
  int repeat = 1;      // Tally's: all points once, then all again
  int total() const { return iterations * repeat; }
};
// Reads `iterations` and `repeat`, which may name parameters. Fails when one is no whole number of
// at least 1.
Status count_copies(const Step& step, const Lookup& lookup, Copies* copies);

// The combinations of parents that package `finished` of step `finished_step` (index) completes:
// one package of each step that `child` depends on, ids in the order of `depend`. They come in
// JUBE's order: steps sorted by name, the first slowest. `done_of(step)` gives a step's finished
// packages by id.
std::vector<std::vector<int>> parent_combinations(
    const Benchmark& benchmark, const Step& child, int finished, int finished_step,
    const std::function<const std::vector<int>&(int step)>& done_of);

// A parent as its child's iteration sees it.
struct ParentIteration {
  std::string step;
  int iteration = 0;
  int copies = 1;  // Copies::total() of its step
};
// The number of a child's first iteration, before it is multiplied by the child's own: its parents'
// iterations as digits, sorted by step name, the last the lowest digit. A workpackage's iteration
// is
//   iteration_base(parents) * copies.total() + (0 .. copies.total() - 1).
int iteration_base(std::vector<ParentIteration> parents);

// Index of a step by name, -1 when there is none.
int step_index(const Benchmark& benchmark, const std::string& name);

}  // namespace tally
