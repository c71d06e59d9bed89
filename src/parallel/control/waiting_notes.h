// Notes of a rank that waits for others at the start.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace tally::train {

// Says for what this process waits: after some seconds, and then seldom. From a thread of its own,
// because what waits may be a call of the system.
class WaitingNotes {
 public:
  using Say = std::function<void(const std::string&)>;
  explicit WaitingNotes(Say say);  // null: nothing is said
  ~WaitingNotes();
  WaitingNotes(const WaitingNotes&) = delete;
  WaitingNotes& operator=(const WaitingNotes&) = delete;
  // Sets the note from now on, which follows "after 5 s "; empty: none.
  void set(std::string text);

 private:
  void run();

  const Say say_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string text_;
  bool ended_ = false;
  std::thread thread_;
};

}  // namespace tally::train
