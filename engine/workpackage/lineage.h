// Which parents a child has and how iterations are counted: the rules by which both the plan and a
// run make workpackages.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "engine/base/status.h"
#include "engine/expand/expand.h"
#include "engine/expand/substitute.h"
#include "engine/workflow/workflow.h"
#include "engine/workpackage/workpackage.h"

namespace tally {

// How many workpackages a step makes of each of its points.
struct Copies {
  int iterations = 1;  // JUBE's
  int repeat = 1;      // Tally's: all points once, then all again
  int total() const { return iterations * repeat; }
};
// Reads `iterations` and `repeat`, which may name parameters. Fails when one is not a whole number of
// at least 1.
Status count_copies(const Step& step, const Lookup& lookup, Copies* copies);

// The workpackages that finished well, found by the values they must share with others: keeps the cost
// of joining two steps proportional to the pairs that fit together.
class FinishedWorkpackages {
 public:
  // Both must outlive the object.
  FinishedWorkpackages(const Benchmark& benchmark, const Expander& expander);
  void add(const Workpackage& workpackage);
  // A step's (index) finished workpackages by id, in the order in which they were added.
  const std::vector<int>& of_step(int step) const;
  // Those of them that can agree with `point`; a superset, Expander::expand() has the last word.
  const std::vector<int>& agreeing(int step, const Point& point) const;

 private:
  struct OfStep {
    bool joined = false;  // with others, in a child that depends on several steps
    std::vector<int> ids;
    std::unordered_map<TextId, size_t>
        names;  // parameters that never change: workpackages that have it
    std::map<std::tuple<TextId, TextId, uint32_t>, std::vector<int>>
        by_value;  // name, value, index
  };
  const Expander& expander_;
  std::vector<OfStep> steps_;
  std::vector<int> none_;
};

// The combinations of parents that `finished` completes: one workpackage of each step that `child`
// depends on, ids in the order of `depend`. They come sorted by the steps'
// names, the first slowest (JUBE's order, which is random for three and more). `finished` itself
// may or may not have been added yet.
std::vector<std::vector<int>> parent_combinations(const Benchmark& benchmark, const Step& child,
                                                  const Workpackage& finished,
                                                  const FinishedWorkpackages& others);

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
