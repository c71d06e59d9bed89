#include "src/parallel/control/waiting_notes.h"

#include <fmt/format.h>

#include <utility>

namespace tally::train {
namespace {

using std::chrono::seconds;

// Ranks that a launcher starts together have met before the first.
constexpr seconds first_note{5}, second_note{60}, between_notes{300};

}  // namespace

WaitingNotes::WaitingNotes(Say say) : say_(std::move(say)) {
  if (say_) thread_ = std::thread([this] { run(); });
}

WaitingNotes::~WaitingNotes() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ended_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void WaitingNotes::set(std::string text) {
  const std::lock_guard<std::mutex> lock(mutex_);
  text_ = std::move(text);
}

void WaitingNotes::run() {
  std::unique_lock<std::mutex> lock(mutex_);
  for (seconds next = first_note;; next = next == first_note ? second_note : next + between_notes) {
    if (changed_.wait_until(lock, start_ + next, [&] { return ended_; })) return;
    if (!text_.empty()) say_(fmt::format("after {} s {}", next.count(), text_));
  }
}

}  // namespace tally::train
