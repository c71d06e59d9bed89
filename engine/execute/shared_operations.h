// Shared operations: one workpackage of a step runs them in the name of all. Holds who stands before
// which operation, who runs it for whom, and how many workpackages a step still waits for.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "engine/base/status.h"
#include "engine/execute/graph.h"
#include "engine/execute/queue.h"
#include "engine/execute/task.h"

namespace tally {

class SharedOperations {
 public:
  SharedOperations(const WorkpackageGraph& graph, const Tasks& tasks, Queue& queue, size_t steps)
      : graph_(graph), tasks_(tasks), queue_(queue), open_of_step_(steps, 0) {}

  // A workpackage of `step` is to be carried out; it has ended.
  void opened(int step) { ++open_of_step_[static_cast<size_t>(step)]; }
  void closed(int step) { --open_of_step_[static_cast<size_t>(step)]; }

  // The task stands before a shared operation. True: all its siblings do, and it is to run it.
  bool gather(Task& task);
  // The task that is to run an operation whose group is complete only now, because siblings failed
  // or never came. Null: there is none.
  Task* next_complete();
  // Whether the workpackage runs an operation for others.
  bool runs(int id) const { return groups_.count(id) != 0; }
  // It has run the operation: the others pass on, through the queue. Does nothing otherwise.
  Status release(int id);
  // It tries again, from its first operation: the others go back to where they stood, since nobody has
  // run the operation. Does nothing when it ran none.
  void put_back(int id);
  // It did not come through: those that it ran the operation for, to be ended as well.
  std::vector<int> take_group(int id);

  // Workpackages that still stand before an operation.
  struct Gathered {
    int step;
    std::vector<int> workpackages;
  };
  std::vector<Gathered> gathered() const;

 private:
  using Place = std::pair<int, std::pair<int, int>>;  // step, cycle and operation
  bool complete(int step, const std::vector<int>& group) const;
  Task& begin(std::vector<int> group);

  const WorkpackageGraph& graph_;
  const Tasks& tasks_;
  Queue& queue_;
  std::map<Place, std::vector<int>> gathered_;
  std::map<int, std::vector<int>> groups_;  // the others, by the workpackage that runs it
  std::vector<int> open_of_step_;           // workpackages not ended
};

}  // namespace tally
