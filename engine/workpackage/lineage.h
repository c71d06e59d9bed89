// Which parents a child has, and how iterations are counted. Plans and runs make workpackages by
// these same rules.
#pragma once

#include <cstdint>
#include <functional>
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

// How many workpackages a step makes from each of its points.
struct Copies {
  int iterations = 1;  // JUBE's `iterations`
  int repeat = 1;      // Tally's `repeat`: all points run once, then all again
  int total() const { return iterations * repeat; }
};
// Reads `iterations` and `repeat`, which may name parameters. Fails unless both are whole numbers
// of at least 1.
Status count_copies(const Step& step, const Lookup& lookup, Copies* copies);

// The workpackages that finished well, indexed by the values that they must share with others. The
// index keeps the cost of joining two steps proportional to the number of pairs that match.
class FinishedWorkpackages {
 public:
  // Both must outlive the object.
  FinishedWorkpackages(const Benchmark& benchmark, const Expander& expander);
  void add(const Workpackage& workpackage);
  // The ids of a step's finished workpackages, in the order in which they were added.
  const std::vector<int>& of_step(int step) const;
  // The workpackages that can agree with `point`. This is a superset: Expander::expand() decides.
  const std::vector<int>& agreeing(int step, const Point& point) const;

 private:
  struct OfStep {
    bool joined = false;  // a child depends on this step and on others
    std::vector<int> ids;
    // Parameter that never changes -> number of workpackages that have it.
    std::unordered_map<TextId, size_t> names;
    // (name, value, index) -> ids.
    std::map<std::tuple<TextId, TextId, uint32_t>, std::vector<int>> by_value;
  };
  const Expander& expander_;
  std::vector<OfStep> steps_;
  std::vector<int> none_;
};

// Gives `take` the combinations of parents that `finished` completes, until it returns false. A
// combination has one workpackage of each step that `child` depends on, with ids in the order of
// `depend`. The combinations are sorted by the steps' names; the first step varies slowest. This is
// JUBE's order, except that JUBE's is random for three steps or more. `others` may or may not
// contain `finished` already. `finished` is not read any more when `take` is called.
void for_each_parents(const Benchmark& benchmark, const Step& child, const Workpackage& finished,
                      const FinishedWorkpackages& others,
                      const std::function<bool(const std::vector<int>&)>& take);

// A parent, as the child's iteration number uses it.
struct ParentIteration {
  std::string step;
  int iteration = 0;
  int copies = 1;  // Copies::total() of its step
};
// The number of a child's first iteration, before it is multiplied by the child's own copies. The
// parents' iterations are the digits of this number. They are sorted by step name, lowest digit
// last. A workpackage's iteration is
//   iteration_base(parents) * copies.total() + (0 .. copies.total() - 1).
int iteration_base(std::vector<ParentIteration> parents);

// The index of the step with this name, or -1 if it does not exist.
int step_index(const Benchmark& benchmark, const std::string& name);

}  // namespace tally
