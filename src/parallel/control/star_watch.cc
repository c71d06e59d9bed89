// The thread of a rendezvous that reads the other ranks' messages, whatever this process's other
// threads do. It never waits for one peer: the others would miss its heartbeats.
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "src/parallel/control/process_state.h"
#include "src/parallel/control/star.h"

namespace tally::train {
namespace {

// An answer needs one message, from a thread that does nothing else.
constexpr auto patience_for_answers = std::chrono::seconds(2);

}  // namespace

void Star::watch() {
  SilenceWatch silence(peers_.size(), options_.silence_seconds,
                       std::max(options_.silence_seconds, options_.host_silence_seconds),
                       Clock::now());
  Clock::time_point next_heartbeat = Clock::now(), next_look = next_heartbeat;
  incoming_.resize(peers_.size());
  std::vector<pollfd> fds;
  for (const Socket& peer : peers_) fds.push_back({peer.fd(), POLLIN, 0});
  fds.push_back({wake_.fd(), POLLIN, 0});
  fds.push_back({supervisor_, POLLIN, 0});
  for (;;) {
    if (Clock::now() >= next_heartbeat) {
      send_heartbeats();
      next_heartbeat = Clock::now() + silence.interval();
    }
    const int ready =
        poll(fds.data(), fds.size(), milliseconds_until_due(std::min(next_heartbeat, next_look)));
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (stopping_) return;
    }
    if (ready > 0 && fds.back().revents != 0) take_news();
    fds.back().fd = supervisor_;
    for (size_t i = 0; ready > 0 && i < peers_.size(); ++i) {
      if (fds[i].revents == 0) continue;
      take(i);
      silence.heard(i, Clock::now());
      if (!peers_[i].open()) fds[i].fd = -1;
    }
    if (pending_ && Clock::now() >= pending_->until)
      learn(std::exchange(pending_, std::nullopt)->failure);
    if (inquiry_ && Clock::now() >= inquiry_->until) conclude(false);
    if (Clock::now() < next_look) continue;
    look(&silence);
    next_look = Clock::now() + silence.interval() / 2;
  }
}

int Star::milliseconds_until_due(Clock::time_point next) const {
  if (pending_) next = std::min(next, pending_->until);
  if (inquiry_) next = std::min(next, inquiry_->until);
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(next - Clock::now()).count();
  return static_cast<int>(std::max<int64_t>(0, left));
}

void Star::look(SilenceWatch* silence) {
  const Clock::time_point now = Clock::now();
  const bool was_stopped = silence->round(now);
  find_silent(silence, now);
  find_late(now, was_stopped);
}

void Star::send_heartbeats() {
  for (size_t i = 0; i < peers_.size(); ++i) {
    // A message that is being received is a sign of life, too.
    const std::unique_lock<std::timed_mutex> lock(sending_[i], std::try_to_lock);
    if (lock.owns_lock() && peers_[i].open()) send_heartbeat(peers_[i]);
  }
}

void Star::find_silent(SilenceWatch* silence, Clock::time_point now) {
  const double two_heartbeats = std::chrono::duration<double>(2 * silence->interval()).count();
  for (size_t i = 0; i < peers_.size(); ++i) {
    if (!peers_[i].open()) continue;
    silence->host_answers(i, seconds_since_answer(peers_[i]) <= two_heartbeats, now);
    const bool host = silence->host_silent(i, now);
    if (!host && !silence->process_silent(i, now)) continue;
    // A process of this host that is not stopped gets no processor or waits for its pages.
    if (!host && local_[i] > 0 && !is_stopped(local_[i])) continue;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (done_[i] != 0) continue;
    }
    return lose(i, fmt::format("it has sent no sign of life for {:.0f} s: it was stopped (SIGSTOP, "
                               "a debugger){}; --distributed-timeout-minutes sets the limit",
                               host ? silence->silence(i, now) : options_.silence_seconds,
                               host ? ", or its host or the network hangs" : ""));
  }
}

// Reads what has arrived from a peer, or notices its end.
void Star::take(size_t peer) {
  const bool open = incoming_[peer].receive(peers_[peer]);
  Message type{};
  std::string body;
  while (peers_[peer].open() && incoming_[peer].next(&type, &body))
    if (type != Message::heartbeat) handle(peer, type, std::move(body));
  if (!peers_[peer].open() || (open && !incoming_[peer].broken())) return;
  close_peer(peer);
  std::unique_lock<std::mutex> lock(mutex_);
  const bool lost = done_[peer] == 0;
  lock.unlock();
  changed_.notify_all();
  if (lost)
    lose(peer, "its connection closed unexpectedly: it was killed, or its node failed", true);
}

void Star::handle(size_t peer, Message type, std::string body) {
  switch (type) {
    case Message::failure:
      if (options_.rank != 0) wait_for_end_of_zero(patience_with_zero);
      // A lost rank is the first cause, and its consequences are not.
      return learn(pending_ ? pending_->failure : decode_failure(body));
    case Message::question:
      return send_to(peer, Message::activity, encode(operations_.activity(Clock::now())));
    case Message::late:
      return ask_all(Clock::now());
    case Message::activity:
      if (!inquiry_) return;
      inquiry_->ranks[peer] = decode_activity(body);
      return conclude(std::all_of(inquiry_->ranks.begin(), inquiry_->ranks.end(),
                                  [](const RankActivity& a) { return a.known; }));
    default:
      break;
  }
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (is_exchange(type)) inbox_[type == Message::background][peer].push_back(std::move(body));
    if (type == Message::done) done_[peer] = 1;
  }
  changed_.notify_all();
}

// The supervisor of this host's ranks tells that one was killed. All of them hear it.
std::optional<Failure> Star::read_news() {
  std::array<char, 1024> packet;
  const ssize_t n = recv(supervisor_, packet.data(), packet.size(), MSG_DONTWAIT);
  if (n == 0) supervisor_ = -1;
  if (n <= 0) return std::nullopt;
  Failure f = decode_failure(std::string(packet.data(), static_cast<size_t>(n)));
  f.host = options_.host;
  return f;
}

void Star::take_news() {
  auto news = read_news();
  if (!news) return;
  Failure& f = *news;
  if (options_.rank != 0 && f.rank != 0) return send_to(0, Message::failure, encode(f));
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (done_[options_.rank == 0 ? static_cast<size_t>(f.rank) : 0] != 0) return;
  }
  f.known_to_zero = options_.rank == 0;
  learn(f);
}

void Star::close_peer(size_t peer) {
  const std::lock_guard<std::timed_mutex> no_sending(sending_[peer]);
  peers_[peer] = Socket();
}

void Star::lose(size_t peer, const std::string& message, bool news_may_come) {
  Failure f;
  f.rank = static_cast<int>(peer);
  f.host = hosts_[peer].empty() ? options_.address : hosts_[peer];
  f.message = message;
  f.known_to_zero = options_.rank == 0;
  if (!news_may_come || supervisor_ < 0) return learn(f);
  if (!pending_) pending_ = Pending{f, Clock::now() + patience_for_news};
}

// Rank 0 reports for all. A launcher may end the others as soon as one has failed (srun
// --kill-on-bad-exit), so no rank ends before rank 0 has, unless that takes too long.
void Star::wait_for_end_of_zero(std::chrono::seconds patience) {
  const Deadline deadline = Clock::now() + patience;
  char byte = 0;
  while (receive_all(peers_[0], &byte, 1, deadline)) {
  }
}

void Star::learn(const Failure& failure) {
  pending_.reset();
  std::unique_lock<std::mutex> lock(mutex_);
  if (failure_ || stopping_) return;
  failure_ = failure;
  const bool failing = failing_;
  lock.unlock();
  if (options_.rank == 0) send_to_all(Message::failure, encode(failure));
  changed_.notify_all();
  if (!failing) on_failure_(failure);
}

// Rank 0 decides, because only it can ask the others.
void Star::find_late(Clock::time_point now, bool restart) {
  if (operations_.seconds_in_operation(now, restart) <= options_.operation_seconds) return;
  if (now < next_late_) return;
  next_late_ = now + std::chrono::seconds(5);
  if (options_.rank == 0) return ask_all(now);
  send_to(0, Message::late, "");
}

void Star::ask_all(Clock::time_point now) {
  if (inquiry_ || options_.rank != 0) return;
  inquiry_ = Inquiry{std::vector<RankActivity>(peers_.size()), now + patience_for_answers};
  for (RankActivity& a : inquiry_->ranks) a.known = false;
  inquiry_->ranks[0] = operations_.activity(now);
  send_to_all(Message::question, "");
}

void Star::conclude(bool all_answered) {
  if (!all_answered && Clock::now() < inquiry_->until) return;
  auto failure = explain_wait(inquiry_->ranks, options_.operation_seconds);
  inquiry_.reset();
  if (!failure) return;
  failure->host = hosts_[static_cast<size_t>(failure->rank)];
  learn(*failure);
}

}  // namespace tally::train
