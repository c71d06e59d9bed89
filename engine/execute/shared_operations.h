// Shared operations. One workpackage of a step runs such an operation for all workpackages of the
// step. This class tracks which workpackages have reached which operation, which one runs it for
// the others, and how many workpackages a step still waits for.
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

  // opened() counts a workpackage of `step` that will run; closed() counts one that has ended.
  void opened(int step) { ++open_of_step_[static_cast<size_t>(step)]; }
  void closed(int step) { --open_of_step_[static_cast<size_t>(step)]; }

  // Called when the task reaches a shared operation. Returns true when all its siblings have
  // reached it; this task then runs it.
  bool gather(Task& task);
  // The task that runs an operation whose group became complete only now, because siblings failed
  // or were never created. Null: there is none.
  Task* next_complete();
  // Whether the workpackage runs an operation for others.
  bool runs(int id) const { return groups_.count(id) != 0; }
  // Called when the workpackage has run the operation. The others proceed through the queue. Does
  // nothing if it ran none.
  Status release(int id);
  // Called when the workpackage starts again from its first operation. The others wait at the
  // operation again, since it has not been run. Does nothing if it ran none.
  void put_back(int id);
  // Called when the workpackage failed. Returns those that it ran the operation for; they must end
  // as well.
  std::vector<int> take_group(int id);

  // Workpackages that still wait at an operation.
  struct Gathered {
    int step;
    std::vector<int> workpackages;
  };
  std::vector<Gathered> gathered() const;

 private:
  using Key = std::pair<int, std::pair<int, int>>;  // step, cycle and operation
  bool complete(int step, const std::vector<int>& group) const;
  Task& begin(std::vector<int> group);

  const WorkpackageGraph& graph_;
  const Tasks& tasks_;
  Queue& queue_;
  std::map<Key, std::vector<int>> gathered_;
  std::map<int, std::vector<int>> groups_;  // the others, by the workpackage that runs it
  std::vector<int> open_of_step_;           // workpackages that have not ended
};

}  // namespace tally
