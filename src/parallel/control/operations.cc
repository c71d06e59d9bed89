#include "src/parallel/control/operations.h"

#include <utility>

namespace tally::train {
namespace {

std::string operation_text(const char* operation, int peer) {
  return peer < 0 ? operation : operation + (" rank " + std::to_string(peer));
}

}  // namespace

int OperationWatch::add_group(std::string id, std::string name, std::vector<int> ranks) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Group& made = groups_.emplace_back();
  made.calls.id = std::move(id);
  made.calls.name = std::move(name);
  made.calls.ranks = std::move(ranks);
  return static_cast<int>(groups_.size()) - 1;
}

void OperationWatch::begin(int group, const char* operation, int peer) {
  const std::lock_guard<std::mutex> lock(mutex_);
  ++number_;
  operation_ = operation;
  group_ = group;
  peer_ = peer;
  if (group < 0) return;
  Group& g = groups_[static_cast<size_t>(group)];
  ++g.calls.calls;
  g.last = operation;
  g.last_peer = peer;
}

void OperationWatch::end() {
  const std::lock_guard<std::mutex> lock(mutex_);
  operation_ = nullptr;
}

void OperationWatch::set_iteration(int64_t iteration) {
  const std::lock_guard<std::mutex> lock(mutex_);
  iteration_ = iteration;
}

void OperationWatch::set_task(const char* task) {
  const std::lock_guard<std::mutex> lock(mutex_);
  task_ = task;
}

double OperationWatch::seconds_in_operation(Clock::time_point now, bool restart) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (restart || seen_ != number_) since_ = now;
  seen_ = number_;
  return operation_ == nullptr ? 0 : std::chrono::duration<double>(now - since_).count();
}

RankActivity OperationWatch::activity(Clock::time_point now) {
  RankActivity a;
  a.seconds = seconds_in_operation(now, false);
  const std::lock_guard<std::mutex> lock(mutex_);
  a.iteration = static_cast<int>(iteration_);
  if (task_ != nullptr) a.task = task_;
  for (const Group& g : groups_) {
    a.groups.push_back(g.calls);
    a.groups.back().last = operation_text(g.last, g.last_peer);
  }
  if (operation_ == nullptr) return a;
  a.operation = operation_text(operation_, peer_);
  a.group = group_;
  return a;
}

}  // namespace tally::train
