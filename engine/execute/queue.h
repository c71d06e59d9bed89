// Decides which workpackage runs next. The order is first in, first out, within the limits of -j, a
// step's procs and max_async, the machine's GPUs, an interrupt and -e.
#pragma once

#include <deque>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/base/status.h"
#include "engine/execute/turn_order.h"
#include "engine/workflow/workflow.h"

namespace tally {

class Queue {
 public:
  // `jobs`: workpackages at once. `gpus`: those that gpu_slots may assign; empty: the machine's.
  Queue(const Benchmark& benchmark, int jobs, const std::vector<std::string>& gpus);

  // Adds a workpackage, first in, first out. A later round of no chain (a step's `repeat`) waits
  // until no earlier one is left in the queue, and in a step with `until` until the earlier ones
  // have ended. One of a chain waits until those before it in the chain have ended. A workpackage
  // that returns, after a shared operation or a failed attempt, starts at once, and keeps its place
  // in its step's counts and its chain.
  void add(int id, int step, const Turn& turn = {});
  // Returns the next workpackage that may start while `running` processes run, or -1. Takes
  // constant time for each, however many are held back.
  int next(int running);
  // Lets nothing start any more, because the run was interrupted or something failed under -e.
  void close() { open_ = false; }
  bool is_open() const { return open_; }
  // A workpackage counts against its step's limits from started() to ended().
  void started(int id, int step);
  void ended(int id, int step);
  // The key of the step that keeps one of its workpackages from starting now. Null: none is held
  // back.
  const char* what_holds(int step) const;
  // Counts a workpackage that waits for a done_file against max_async again.
  void keep_waiting(int step);

  enum class Gpus { taken, later, never };
  // Takes `count` GPUs for a workpackage. `later`: too few are free; the workpackage is queued
  // again when some are. `never`: this machine has fewer GPUs.
  Gpus take_gpus(int id, int step, int count);
  std::vector<std::string> gpus_of(int id) const;
  size_t gpu_count() const { return gpu_count_; }
  // An error: the host could not tell how many it has.
  const Status& gpus_known() const { return gpus_known_; }

 private:
  struct Caps {
    int max_async = 0;  // 0: none
    int procs = 1;
    int active = 0;         // started and not ended, and waiting
    int first_decided = 0;  // with `until`: the first repetition that may be left out; 0: none
    std::deque<int> held;
  };
  static bool at_most_waiting(const Caps& caps);  // the number that max_async allows
  bool held_back(int id, const Caps& caps) const;
  using Rounds = std::map<int, std::deque<int>>;  // by round
  bool waits_for_results(const Rounds& rounds) const;
  bool is_open_phase(int phase) const;
  bool take_rounds();
  void find_gpus(const std::vector<std::string>& given);

  int jobs_;
  bool open_ = true;
  std::deque<int> queue_;
  std::map<int, std::map<int, Rounds>> later_;  // not started, by phase and chain
  std::unordered_map<int, Turn> turns_;         // of chains, also of ended ones, by id
  std::map<int, int> active_in_chain_, active_in_phase_;
  std::unordered_map<int, int> step_of_;  // of queued and held workpackages
  std::unordered_map<int, bool> active_;
  std::vector<Caps> caps_;
  std::vector<std::string> free_gpus_;
  size_t gpu_count_ = 0;
  Status gpus_known_;
  std::map<int, std::vector<std::string>> gpus_of_;
  std::deque<int> held_for_gpus_;
};

}  // namespace tally
