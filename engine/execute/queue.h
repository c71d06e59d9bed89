// It is decided here what runs next: first in, first out, as far as -j, a step's procs and
// max_async, the machine's GPUs, an interrupt and -e allow.
#pragma once

#include <deque>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/execute/execute.h"
#include "engine/workflow/workflow.h"

namespace tally {

class Queue {
 public:
  Queue(const Benchmark& benchmark, const RunOptions& options);

  // First in, first out; a later repetition (of a step's `repeat`) waits until no earlier one is
  // left in the queue. A workpackage that comes back (after a shared operation) keeps its place in its
  // step's counts.
  void add(int id, int step, int repetition = 0);
  // The next that may start while `running` processes run, or -1. Costs a constant time each,
  // however many are held back.
  int next(int running);
  // Nothing starts any more: the run was interrupted, or something failed under -e.
  void close() { open_ = false; }
  bool is_open() const { return open_; }
  // From start to end a workpackage counts against its step's caps.
  void started(int id, int step);
  void ended(int id, int step);
  // The key of the step that keeps one of its workpackages from starting now; null: none is kept.
  const char* what_holds(int step) const;
  // It waits for a done_file: max_async counts it on.
  void keep_waiting(int step);

  enum class Gpus { taken, later, never };
  // Takes `count` GPUs for a workpackage; `later`: it is queued again when some are free; `never`: this
  // machine has fewer.
  Gpus take_gpus(int id, int step, int count);
  std::vector<std::string> gpus_of(int id) const;
  size_t gpu_count() const { return gpu_count_; }

 private:
  struct Caps {
    int max_async = 0;  // 0: none
    int procs = 1;
    int active = 0;  // started, not ended, and waiting
    std::deque<int> held;
  };
  static bool at_most_waiting(const Caps& caps);  // as max_async allows
  bool held_back(int id, const Caps& caps) const;
  void find_gpus(const RunOptions& options);

  int jobs_;
  bool open_ = true;
  std::deque<int> queue_;
  std::map<int, std::deque<int>> repetitions_;  // not begun: by number
  std::unordered_map<int, int> step_of_;        // of queued and held workpackages
  std::unordered_map<int, bool> active_;
  std::vector<Caps> caps_;
  std::vector<std::string> free_gpus_;
  size_t gpu_count_ = 0;
  std::map<int, std::vector<std::string>> gpus_of_;
  std::deque<int> held_for_gpus_;
};

}  // namespace tally
