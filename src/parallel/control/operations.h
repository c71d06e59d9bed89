// Operations of a rank with the others: the one that it is in, and how many of each group it has
// called. When one waits too long, rank 0 compares the ranks and finds who did not come.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "src/parallel/control/rendezvous.h"

namespace tally::train {

// A group as its members know it. `id` is the same on all of them.
struct GroupCalls {
  std::string id, name;
  std::vector<int> ranks;  // ranks of the run; empty: not known
  int64_t calls = 0;       // operations of the group that this rank has begun
  std::string last;        // the newest of them
};

// One moment of a rank. `operation`: that it is in now, as "all-reduce"; empty: in none.
struct RankActivity {
  bool known = true;      // false: the rank did not answer
  std::string operation;  // "all-reduce", "receive from rank 3"
  int group = -1;         // index in `groups`; -1: its own device
  double seconds = 0;     // it has been in the operation so long
  int iteration = 0;      // 0: before the first
  std::string task;       // work that may take any time: "writing a checkpoint"; empty: none
  std::vector<GroupCalls> groups;
};

// The operations of one process. The main thread calls begin() and end(), another one the rest. The
// main thread's calls read no clock: the other thread measures.
class OperationWatch {
 public:
  using Clock = std::chrono::steady_clock;
  int add_group(std::string id, std::string name, std::vector<int> ranks);
  // `operation` is a literal. `peer`: the rank of the run it is about; -1: all of the group.
  // `group` -1: a wait for this rank's own device.
  void begin(int group, const char* operation, int peer = -1);
  void end();
  void set_iteration(int64_t iteration);
  // `task` is a literal; null ends it.
  void set_task(const char* task);
  // The time that the main thread has been in its operation; 0: it is in none. One thread calls
  // this regularly. `restart`: this process was suspended meanwhile, which does not count.
  double seconds_in_operation(Clock::time_point now, bool restart);
  RankActivity activity(Clock::time_point now);

 private:
  struct Group {
    GroupCalls calls;
    const char* last = "";
    int last_peer = -1;
  };
  std::mutex mutex_;
  std::vector<Group> groups_;
  const char* operation_ = nullptr;
  int group_ = -1, peer_ = -1;
  int64_t number_ = 0, iteration_ = 0;
  const char* task_ = nullptr;
  // The number that seconds_in_operation() saw last, and since when.
  int64_t seen_ = -1;
  Clock::time_point since_;
};

// An operation, from here to the end of the block. `watch` may be null.
class OperationScope {
 public:
  OperationScope(OperationWatch* watch, int group, const char* operation, int peer = -1)
      : watch_(watch) {
    if (watch_) watch_->begin(group, operation, peer);
  }
  ~OperationScope() {
    if (watch_) watch_->end();
  }
  OperationScope(const OperationScope&) = delete;
  OperationScope& operator=(const OperationScope&) = delete;

 private:
  OperationWatch* watch_;
};

// Work that others may have to wait for as long as it takes.
class TaskScope {
 public:
  TaskScope(OperationWatch& watch, const char* task) : watch_(watch) { watch_.set_task(task); }
  ~TaskScope() { watch_.set_task(nullptr); }
  TaskScope(const TaskScope&) = delete;
  TaskScope& operator=(const TaskScope&) = delete;

 private:
  OperationWatch& watch_;
};

std::string encode(const RankActivity& activity);
RankActivity decode_activity(const std::string& body);

// The failure when `ranks` (by rank) wait for longer than the limit, with one sentence that names
// the rank that waits, its group, its operation and who did not come. Empty where no rank waits so
// long, or where one does work that may take any time.
std::optional<Failure> explain_wait(const std::vector<RankActivity>& ranks, double limit_seconds);

}  // namespace tally::train
