#include "src/parallel/rendezvous.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <numeric>

#include "src/parallel/process_state.h"
#include "src/parallel/star.h"

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
  if (options_.rank == 0) {
    receive_all_ranks(deadline);
  } else {
    visit_zero(deadline);
  }
  sending_ = std::vector<std::timed_mutex>(peers_.size());
  wake_ = Socket(eventfd(0, EFD_CLOEXEC));
  thread_ = std::thread([this] { watch(); });
}

void Star::receive_all_ranks(Deadline deadline) {
  peers_.resize(static_cast<size_t>(options_.size));
  local_.resize(peers_.size());
  hosts_[0] = options_.host;
  if (options_.listening_fd < 0) check_host_name(options_.address, deadline);
  const Socket listener =
      options_.listening_fd >= 0
          ? Socket(options_.listening_fd)
          : listen_on(options_.address == "127.0.0.1" ? "127.0.0.1" : "", options_.port);
  const auto missing = [&] {
    std::vector<int> ranks;
    for (int r = 1; r < options_.size; ++r)
      if (!peers_[static_cast<size_t>(r)].open()) ranks.push_back(r);
    return ranks;
  };
  while (!missing().empty()) {
    Socket visitor = accept_until(listener, deadline);
    if (!visitor.open()) give_up(missing());
    admit(std::move(visitor), deadline);
  }
  address_ = local_address(peers_[1]);
  std::string welcome;
  put(&welcome, options_.host);
  put(&welcome, process_name());
  for (size_t r = 1; r < peers_.size(); ++r) send_message(peers_[r], Message::welcome, welcome);
}

// One message for all: those that have come learn that this rank reports it.
void Star::give_up(const std::vector<int>& missing) {
  const std::string why = fmt::format(
      "{} of {} ranks did not connect to {}:{} within {:.0f} s: missing {}{}", missing.size(),
      options_.size, options_.address, options_.port, options_.timeout_seconds,
      missing.size() == 1 ? "rank " : "ranks ", fmt::join(missing, ", "));
  sending_ = std::vector<std::timed_mutex>(peers_.size());
  send_to_all(Message::failure, encode(Failure{0, options_.host, 1, why}));
  throw CommunicationError(why);
}

// Receives a visitor's hello. Strangers (another run on the same port, a port scanner) are
// rejected.
void Star::admit(Socket visitor, Deadline deadline) {
  Message type{};
  std::string body;
  if (!receive_message(visitor, std::min(deadline, in_seconds(10)), &type, &body) ||
      type != Message::hello)
    return;
  const Hello hello = decode_hello(body);
  const int rank = hello.rank;
  std::string why;
  if (hello.run != options_.run) {
    why = "another run listens there: give each its own --master-port or MASTER_PORT";
  } else if (hello.protocol != own_protocol()) {
    why = fmt::format(
        "rank {} is another version of tally-train: start the same build on every "
        "rank",
        rank);
  } else if (hello.size != options_.size) {
    why = fmt::format("rank 0 counts {} ranks and rank {} counts {}", options_.size, rank,
                      hello.size);
  } else if (rank < 1 || rank >= hello.size || peers_[static_cast<size_t>(rank)].open()) {
    why = fmt::format("two processes say that they are rank {}", rank);
  }
  if (!why.empty()) {
    try {
      send_message(visitor, Message::refused, why);
    } catch (const CommunicationError&) {  // it is gone already
    }
    return;
  }
  hosts_[static_cast<size_t>(rank)] = hello.host;
  local_[static_cast<size_t>(rank)] = local_process(hello.process);
  peers_[static_cast<size_t>(rank)] = std::move(visitor);
}

void Star::visit_zero(Deadline deadline) {
  peers_.push_back(connect_until(options_.address, options_.port, deadline));
  address_ = local_address(peers_[0]);
  send_message(peers_[0], Message::hello,
               encode(Hello{own_protocol(), options_.run, options_.rank, options_.size,
                            options_.host, process_name()}));
  Message type{};
  std::string body;
  // Rank 0 gives up first, and its closed connection shows that.
  if (!receive_message(peers_[0], deadline + std::chrono::seconds(10), &type, &body))
    throw CommunicationError(
        fmt::format("rank 0 at {}:{} gave up before all {} ranks had connected", options_.address,
                    options_.port, options_.size));
  if (type == Message::failure) {
    wait_for_end_of_zero();
    throw ReportedByZero(decode_failure(body).message);
  }
  if (type != Message::welcome)
    throw CommunicationError(
        fmt::format("rank 0 at {}:{}: {}", options_.address, options_.port, body));
  Reader in(body);
  hosts_[0] = in.text();
  local_.push_back(local_process(in.text()));
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
