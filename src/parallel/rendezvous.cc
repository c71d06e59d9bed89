#include "src/parallel/rendezvous.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>

#include "src/parallel/heartbeat.h"
#include "src/parallel/rendezvous_wire.h"
#include "src/parallel/tcp.h"

namespace tally::train {
namespace {

using Clock = std::chrono::steady_clock;

class Star final : public Rendezvous {
 public:
  Star(const RendezvousOptions& options, OnFailure on_failure)
      : options_(options),
        on_failure_(std::move(on_failure)),
        inbox_{Inbox(static_cast<size_t>(options.size)), Inbox(static_cast<size_t>(options.size))},
        hosts_(static_cast<size_t>(options.size)),
        done_(static_cast<size_t>(options.size)) {
    if (options_.size == 1) return;
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

  ~Star() override { stop(); }
  Star(const Star&) = delete;
  Star& operator=(const Star&) = delete;

  int rank() const override { return options_.rank; }
  int size() const override { return options_.size; }
  const std::string& address() const override { return address_; }
  std::vector<std::string> exchange(const std::string& mine, ExchangeKind kind) override;
  Failure fail(int code, const std::string& message, bool consequence) override;
  void done() override;

 private:
  void receive_all_ranks(Deadline deadline);
  void admit(Socket visitor, Deadline deadline);
  void visit_zero(Deadline deadline);
  void watch();
  void take(size_t peer);
  void send_heartbeats();
  void find_silent(const SilenceWatch& silence, Clock::time_point now);
  void lose(size_t peer, const std::string& message);
  void wait_for_end_of_zero();
  void learn(const Failure& failure);
  void send_to_all(Message type, const std::string& body);
  std::string wait_for(std::unique_lock<std::mutex>* lock, ExchangeKind kind, size_t peer);
  void stop();

  const RendezvousOptions options_;
  const OnFailure on_failure_;
  std::string address_ = "127.0.0.1";
  std::vector<Socket> peers_;  // rank 0: by rank, its own place closed; others: rank 0 alone
  Socket wake_;
  std::thread thread_;

  // One mutex for each peer: a peer that does not read delays only what is sent to it.
  std::vector<std::timed_mutex> sending_;
  std::mutex mutex_;
  std::condition_variable changed_;
  using Inbox = std::vector<std::deque<std::string>>;  // by rank of the sender
  std::array<Inbox, 2> inbox_;                         // by kind of exchange
  std::vector<std::string> hosts_;
  std::vector<char> done_;
  std::optional<Failure> failure_;
  bool failing_ = false, stopping_ = false;
};

void Star::receive_all_ranks(Deadline deadline) {
  peers_.resize(static_cast<size_t>(options_.size));
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
    if (!visitor.open())
      throw CommunicationError(fmt::format(
          "{} of {} ranks did not connect to {}:{} within {:.0f} s: missing {}{}", missing().size(),
          options_.size, options_.address, options_.port, options_.timeout_seconds,
          missing().size() == 1 ? "rank " : "ranks ", fmt::join(missing(), ", ")));
    admit(std::move(visitor), deadline);
  }
  address_ = local_address(peers_[1]);
  for (size_t r = 1; r < peers_.size(); ++r) send_message(peers_[r], Message::welcome, "");
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
  peers_[static_cast<size_t>(rank)] = std::move(visitor);
}

void Star::visit_zero(Deadline deadline) {
  peers_.push_back(connect_until(options_.address, options_.port, deadline));
  address_ = local_address(peers_[0]);
  send_message(
      peers_[0], Message::hello,
      encode(Hello{own_protocol(), options_.run, options_.rank, options_.size, options_.host}));
  Message type{};
  std::string body;
  // Rank 0 gives up first, and its closed connection shows that.
  if (!receive_message(peers_[0], deadline + std::chrono::seconds(10), &type, &body))
    throw CommunicationError(
        fmt::format("rank 0 at {}:{} gave up before all {} ranks had connected", options_.address,
                    options_.port, options_.size));
  if (type != Message::welcome)
    throw CommunicationError(
        fmt::format("rank 0 at {}:{}: {}", options_.address, options_.port, body));
}

// The thread that reads the peers' messages and sends heartbeats, whatever other threads are doing.
void Star::watch() {
  SilenceWatch silence(peers_.size(), options_.silence_seconds, Clock::now());
  Clock::time_point next_heartbeat = Clock::now();
  std::vector<pollfd> fds;
  for (const Socket& peer : peers_) fds.push_back({peer.fd(), POLLIN, 0});
  fds.push_back({wake_.fd(), POLLIN, 0});
  for (;;) {
    if (Clock::now() >= next_heartbeat) {
      send_heartbeats();
      next_heartbeat = Clock::now() + silence.interval();
    }
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(next_heartbeat - Clock::now());
    const int ready =
        poll(fds.data(), fds.size(), static_cast<int>(std::max<int64_t>(0, left.count())));
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (stopping_) return;
    }
    for (size_t i = 0; ready > 0 && i < peers_.size(); ++i) {
      if (fds[i].revents == 0) continue;
      take(i);
      silence.heard(i, Clock::now());
      if (!peers_[i].open()) fds[i].fd = -1;
    }
    silence.round(Clock::now());
    find_silent(silence, Clock::now());
  }
}

void Star::send_heartbeats() {
  for (size_t i = 0; i < peers_.size(); ++i) {
    // A message that is being received is a sign of life, too.
    const std::unique_lock<std::timed_mutex> lock(sending_[i], std::try_to_lock);
    if (lock.owns_lock() && peers_[i].open()) send_heartbeat(peers_[i]);
  }
}

void Star::find_silent(const SilenceWatch& silence, Clock::time_point now) {
  for (size_t i = 0; i < peers_.size(); ++i) {
    if (!peers_[i].open() || !silence.silent(i, now)) continue;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (done_[i] != 0) continue;
    }
    return lose(i, fmt::format("it has sent no sign of life for {:.0f} s: it was stopped (SIGSTOP, "
                               "a debugger), or its host hangs; --distributed-timeout-minutes sets "
                               "the limit",
                               options_.silence_seconds));
  }
}

// Reads one message of a peer, or notices its end.
void Star::take(size_t peer) {
  Message type{};
  std::string body;
  // Waits for the rest of a message that has begun; the other peers wait meanwhile.
  const double patience = std::min(30.0, options_.silence_seconds / 2);
  const bool whole = receive_message(peers_[peer], in_seconds(patience), &type, &body);
  if (whole && type == Message::heartbeat) return;
  std::unique_lock<std::mutex> lock(mutex_);
  if (whole && is_exchange(type)) inbox_[type == Message::background][peer].push_back(body);
  if (whole && type == Message::done) done_[peer] = 1;
  const bool lost = !whole && done_[peer] == 0;
  lock.unlock();
  changed_.notify_all();
  if (whole && type == Message::failure) {
    if (options_.rank != 0) wait_for_end_of_zero();
    learn(decode_failure(body));
  }
  if (whole) return;
  {
    const std::lock_guard<std::timed_mutex> no_sending(sending_[peer]);
    peers_[peer] = Socket();
  }
  if (lost) lose(peer, "its connection closed unexpectedly: it was killed, or its node failed");
}

void Star::lose(size_t peer, const std::string& message) {
  Failure f;
  f.rank = static_cast<int>(peer);
  f.host = hosts_[peer].empty() ? options_.address : hosts_[peer];
  f.message = message;
  f.known_to_zero = options_.rank == 0;
  learn(f);
}

// Rank 0 reports for all. A launcher may end the others as soon as one has failed (srun
// --kill-on-bad-exit), so no rank ends before rank 0 has, unless that takes too long.
void Star::wait_for_end_of_zero() {
  const Deadline deadline = in_seconds(4);
  Message type{};
  std::string body;
  while (receive_message(peers_[0], deadline, &type, &body)) {
  }
}

void Star::learn(const Failure& failure) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (failure_ || stopping_) return;
  failure_ = failure;
  const bool failing = failing_;
  lock.unlock();
  if (options_.rank == 0) send_to_all(Message::failure, encode(failure));
  changed_.notify_all();
  if (!failing) on_failure_(failure);
}

void Star::send_to_all(Message type, const std::string& body) {
  for (size_t i = 0; i < peers_.size(); ++i) {
    std::unique_lock<std::timed_mutex> lock(sending_[i], std::defer_lock);
    // An exchange waits for a slow peer. The end of a run does not wait for a peer that hangs while
    // another thread sends to it.
    if (is_exchange(type)) {
      lock.lock();
    } else if (!lock.try_lock_for(std::chrono::seconds(1))) {
      continue;
    }
    if (!peers_[i].open()) continue;
    try {
      send_message(peers_[i], type, body);
    } catch (const CommunicationError&) {  // the peer is gone; watch() handles that
    }
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

}  // namespace

std::unique_ptr<Rendezvous> Rendezvous::meet(const RendezvousOptions& options,
                                             OnFailure on_failure) {
  return std::make_unique<Star>(options, std::move(on_failure));
}

}  // namespace tally::train
