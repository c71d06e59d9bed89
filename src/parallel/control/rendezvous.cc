#include "src/parallel/control/rendezvous.h"

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <numeric>

#include "src/parallel/control/star.h"

namespace tally::train {

Star::Star(const RendezvousOptions& options, OnFailure on_failure)
    : options_(options),
      on_failure_(std::move(on_failure)),
      supervisor_(options.supervisor_fd),
      inbox_{Inbox(static_cast<size_t>(options.size)), Inbox(static_cast<size_t>(options.size))},
      hosts_(static_cast<size_t>(options.size)),
      done_(static_cast<size_t>(options.size)) {
  if (options_.size == 1) return;
  std::vector<int> all(static_cast<size_t>(options_.size));
  std::iota(all.begin(), all.end(), 0);
  exchanges_ = operations_.add_group("exchange", "world", std::move(all));
  const Deadline deadline = in_seconds(options_.timeout_seconds);
  meet_others(deadline);
  sending_ = std::vector<std::timed_mutex>(peers_.size());
  wake_ = Socket(eventfd(0, EFD_CLOEXEC));
  thread_ = std::thread([this] { watch(); });
}

void Star::send_to_all(Message type, const std::string& body) {
  for (size_t i = 0; i < peers_.size(); ++i) send_to(i, type, body);
}

void Star::send_to(size_t peer, Message type, const std::string& body) {
  std::unique_lock<std::timed_mutex> lock(sending_[peer], std::defer_lock);
  // An exchange waits for a slow peer. The end of a run does not wait for a peer that hangs while
  // another thread sends to it.
  if (is_exchange(type)) {
    lock.lock();
  } else if (!lock.try_lock_for(std::chrono::seconds(1))) {
    return;
  }
  if (!peers_[peer].open()) return;
  try {
    send_message(peers_[peer], type, body);
  } catch (const CommunicationError&) {  // the peer is gone; watch() handles that
  }
}

std::string Star::wait_for(std::unique_lock<std::mutex>* lock, ExchangeKind kind, size_t peer) {
  std::deque<std::string>& inbox = inbox_[static_cast<size_t>(kind)][peer];
  changed_.wait(*lock, [&] { return !inbox.empty() || failure_ || done_[peer] != 0; });
  if (inbox.empty())
    throw CommunicationError(
        failure_
            ? fmt::format("rank {} failed: {}", failure_->rank, failure_->message)
            : fmt::format("rank {} ended its run before this rank did: give both the same flags",
                          peer));
  std::string body = std::move(inbox.front());
  inbox.pop_front();
  return body;
}

std::vector<std::string> Star::exchange(const std::string& mine, ExchangeKind kind) {
  const Message type = kind == ExchangeKind::main ? Message::exchange : Message::background;
  const auto count = static_cast<size_t>(options_.size);
  std::vector<std::string> all(count);
  if (count == 1) return {mine};
  const OperationScope scope(kind == ExchangeKind::main ? &operations_ : nullptr, exchanges_,
                             "the exchange of settings and results");
  if (options_.rank != 0) send_to_all(type, mine);
  std::unique_lock<std::mutex> lock(mutex_);
  if (options_.rank != 0) {
    const std::string body = wait_for(&lock, kind, 0);
    Reader in(body);
    for (std::string& one : all) one = in.text();
    return all;
  }
  all[0] = mine;
  for (size_t r = 1; r < count; ++r) all[r] = wait_for(&lock, kind, r);
  lock.unlock();
  std::string body;
  for (const std::string& one : all) put(&body, one);
  send_to_all(type, body);
  return all;
}

Failure Star::fail(int code, const std::string& message, bool consequence) {
  Failure mine{options_.rank, options_.host, code, message};
  if (options_.size == 1) return mine;
  std::unique_lock<std::mutex> lock(mutex_);
  if (consequence)
    changed_.wait_for(lock, std::chrono::seconds(5), [&] { return failure_.has_value(); });
  if (failure_) {  // another failure came first, and watch() is about to end this process
    Failure first = *failure_;
    changed_.wait_for(lock, std::chrono::seconds(10), [] { return false; });
    return first;
  }
  failing_ = true;
  if (options_.rank == 0) {
    failure_ = mine;
    lock.unlock();
    send_to_all(Message::failure, encode(mine));
    return mine;
  }
  lock.unlock();
  send_to_all(Message::failure, encode(mine));
  lock.lock();
  changed_.wait_for(lock, std::chrono::seconds(10), [&] { return failure_.has_value(); });
  if (failure_ && failure_->known_to_zero) return *failure_;
  mine.known_to_zero = false;
  return mine;
}

void Star::done() {
  if (!thread_.joinable()) return;
  send_to_all(Message::done, "");
  {
    std::unique_lock<std::mutex> lock(mutex_);
    const auto all_done = [&] {
      return failure_ || std::find(done_.begin() + 1, done_.end(), 0) == done_.end();
    };
    if (options_.rank == 0) {
      changed_.wait_for(lock, std::chrono::seconds(60), all_done);
    } else {
      // It may be writing a checkpoint, for as long as that takes.
      changed_.wait(lock, [&] { return done_[0] != 0 || failure_; });
    }
  }
  stop();
}

void Star::stop() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
  }
  const uint64_t one = 1;
  if (write(wake_.fd(), &one, sizeof one) != sizeof one) std::terminate();
  thread_.join();
  peers_.clear();
}

std::unique_ptr<Rendezvous> Rendezvous::meet(const RendezvousOptions& options,
                                             OnFailure on_failure) {
  return std::make_unique<Star>(options, std::move(on_failure));
}

}  // namespace tally::train
