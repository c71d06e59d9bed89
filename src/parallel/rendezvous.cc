#include "src/parallel/rendezvous.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>

#include "src/parallel/tcp.h"

namespace tally::train {
namespace {

using Clock = std::chrono::steady_clock;

// Both ends are the same program on the same kind of processor: numbers travel as they lie in
// memory.
constexpr std::array<char, 8> magic{'t', 'a', 'l', 'l', 'y', 'r', 'v', '1'};
constexpr uint32_t largest_message = 1U << 28;

struct Header {
  char type = 0;  // 'H'ello, 'R'efused, 'W'elcome, 'X'change, 'F'ailure, 'D'one
  char unused[3] = {};
  uint32_t bytes = 0;
};

Deadline in_seconds(double seconds) {
  return Clock::now() +
         std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

void put(std::string* out, const std::string& text) {
  const auto size = static_cast<uint32_t>(text.size());
  out->append(reinterpret_cast<const char*>(&size), sizeof size);
  out->append(text);
}

void put(std::string* out, int number) {
  put(out, std::string(reinterpret_cast<const char*>(&number), sizeof number));
}

// Reads what put() wrote; a message that is too short gives empty texts and zeros.
class Reader {
 public:
  explicit Reader(const std::string& text) : text_(text) {}
  std::string text() {
    uint32_t size = 0;
    if (text_.size() - at_ < sizeof size) return "";
    std::memcpy(&size, text_.data() + at_, sizeof size);
    at_ += sizeof size;
    std::string out = text_.substr(at_, size);
    at_ += out.size();
    return out;
  }
  int number() {
    const std::string bytes = text();
    int value = 0;
    if (bytes.size() == sizeof value) std::memcpy(&value, bytes.data(), sizeof value);
    return value;
  }

 private:
  const std::string& text_;
  size_t at_ = 0;
};

void send_message(const Socket& to, char type, const std::string& body) {
  Header header;
  header.type = type;
  header.bytes = static_cast<uint32_t>(body.size());
  std::string whole(reinterpret_cast<const char*>(&header), sizeof header);
  whole += body;
  send_all(to, whole.data(), whole.size());
}

bool receive_message(const Socket& from, Deadline deadline, char* type, std::string* body) {
  Header header;
  if (!receive_all(from, &header, sizeof header, deadline) || header.bytes > largest_message)
    return false;
  body->resize(header.bytes);
  *type = header.type;
  return receive_all(from, body->data(), body->size(), deadline);
}

std::string failure_text(const Failure& f) {
  std::string body;
  put(&body, f.rank);
  put(&body, f.code);
  put(&body, f.host);
  put(&body, f.message);
  return body;
}

Failure read_failure(const std::string& body) {
  Reader in(body);
  Failure f;
  f.rank = in.number();
  f.code = in.number();
  f.host = in.text();
  f.message = in.text();
  return f;
}

class Star final : public Rendezvous {
 public:
  Star(const RendezvousOptions& options, OnFailure on_failure)
      : options_(options),
        on_failure_(std::move(on_failure)),
        inbox_(static_cast<size_t>(options.size)),
        hosts_(static_cast<size_t>(options.size)),
        done_(static_cast<size_t>(options.size)) {
    if (options_.size == 1) return;
    const Deadline deadline = in_seconds(options_.timeout_seconds);
    if (options_.rank == 0) {
      receive_all_ranks(deadline);
    } else {
      visit_zero(deadline);
    }
    wake_ = Socket(eventfd(0, EFD_CLOEXEC));
    thread_ = std::thread([this] { watch(); });
  }

  ~Star() override { stop(); }
  Star(const Star&) = delete;
  Star& operator=(const Star&) = delete;

  int rank() const override { return options_.rank; }
  int size() const override { return options_.size; }
  const std::string& address() const override { return address_; }
  std::vector<std::string> exchange(const std::string& mine) override;
  Failure fail(int code, const std::string& message, bool consequence) override;
  void done() override;

 private:
  void receive_all_ranks(Deadline deadline);
  void admit(Socket visitor, Deadline deadline);
  void visit_zero(Deadline deadline);
  void watch();
  void take(size_t peer);
  void wait_for_end_of_zero();
  void learn(const Failure& failure);
  void tell_all(char type, const std::string& body);
  std::string wait_for(std::unique_lock<std::mutex>* lock, size_t peer);
  void stop();

  const RendezvousOptions options_;
  const OnFailure on_failure_;
  std::string address_ = "127.0.0.1";
  std::vector<Socket> peers_;  // rank 0: by rank, its own place closed; others: rank 0 alone
  Socket wake_;
  std::thread thread_;

  std::mutex mutex_, sending_;
  std::condition_variable changed_;
  std::vector<std::deque<std::string>> inbox_;  // by rank of the sender
  std::vector<std::string> hosts_;
  std::vector<char> done_;
  std::optional<Failure> failure_;
  bool failing_ = false, stopping_ = false;
};

void Star::receive_all_ranks(Deadline deadline) {
  peers_.resize(static_cast<size_t>(options_.size));
  hosts_[0] = options_.host;
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
          "{} of {} ranks did not come to {}:{} within {:.0f} s: missing {}{}", missing().size(),
          options_.size, options_.address, options_.port, options_.timeout_seconds,
          missing().size() == 1 ? "rank " : "ranks ", fmt::join(missing(), ", ")));
    admit(std::move(visitor), deadline);
  }
  address_ = local_address(peers_[1]);
  for (size_t r = 1; r < peers_.size(); ++r) send_message(peers_[r], 'W', "");
}

// A visitor says who it is. Strangers (another run on the same port, a port scanner) are sent away.
void Star::admit(Socket visitor, Deadline deadline) {
  char type = 0;
  std::string body;
  if (!receive_message(visitor, std::min(deadline, in_seconds(10)), &type, &body) || type != 'H')
    return;
  Reader in(body);
  const std::string mark = in.text(), run = in.text();
  const int rank = in.number(), size = in.number();
  const std::string host = in.text();
  std::string why;
  if (mark != std::string(magic.begin(), magic.end()) || run != options_.run) {
    why = "another run listens there: give each its own --master-port or MASTER_PORT";
  } else if (size != options_.size) {
    why = fmt::format("rank 0 counts {} ranks and rank {} counts {}", options_.size, rank, size);
  } else if (rank < 1 || rank >= size || peers_[static_cast<size_t>(rank)].open()) {
    why = fmt::format("two processes say that they are rank {}", rank);
  }
  if (!why.empty()) {
    try {
      send_message(visitor, 'R', why);
    } catch (const CommunicationError&) {  // it is gone already
    }
    return;
  }
  hosts_[static_cast<size_t>(rank)] = host;
  peers_[static_cast<size_t>(rank)] = std::move(visitor);
}

void Star::visit_zero(Deadline deadline) {
  peers_.push_back(connect_until(options_.address, options_.port, deadline));
  address_ = local_address(peers_[0]);
  std::string hello;
  put(&hello, std::string(magic.begin(), magic.end()));
  put(&hello, options_.run);
  put(&hello, options_.rank);
  put(&hello, options_.size);
  put(&hello, options_.host);
  send_message(peers_[0], 'H', hello);
  char type = 0;
  std::string body;
  // Rank 0 gives up first, and its closing tells us so.
  if (!receive_message(peers_[0], deadline + std::chrono::seconds(10), &type, &body))
    throw CommunicationError(fmt::format("rank 0 at {}:{} gave up before all {} ranks had come",
                                         options_.address, options_.port, options_.size));
  if (type != 'W')
    throw CommunicationError(
        fmt::format("rank 0 at {}:{}: {}", options_.address, options_.port, body));
}

void Star::watch() {
  std::vector<pollfd> fds;
  for (const Socket& peer : peers_) fds.push_back({peer.fd(), POLLIN, 0});
  fds.push_back({wake_.fd(), POLLIN, 0});
  for (;;) {
    if (poll(fds.data(), fds.size(), -1) < 0) continue;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (stopping_) return;
    }
    for (size_t i = 0; i < peers_.size(); ++i) {
      if (fds[i].revents == 0) continue;
      take(i);
      if (!peers_[i].open()) fds[i].fd = -1;
    }
  }
}

// One message, or the end, of a peer.
void Star::take(size_t peer) {
  char type = 0;
  std::string body;
  const bool whole = receive_message(peers_[peer], in_seconds(30), &type, &body);
  std::unique_lock<std::mutex> lock(mutex_);
  if (whole && type == 'X') inbox_[peer].push_back(body);
  if (whole && type == 'D') done_[peer] = 1;
  const bool lost = !whole && done_[peer] == 0;
  lock.unlock();
  changed_.notify_all();
  if (whole && type == 'F') {
    if (options_.rank != 0) wait_for_end_of_zero();
    learn(read_failure(body));
  }
  if (whole) return;
  {
    const std::lock_guard<std::mutex> no_sending(sending_);
    peers_[peer] = Socket();
  }
  if (!lost) return;
  Failure f;
  f.rank = static_cast<int>(peer);
  f.host = hosts_[peer].empty() ? options_.address : hosts_[peer];
  f.message = "its connection closed without a word: it was killed, or its node failed";
  f.known_to_zero = options_.rank == 0;
  learn(f);
}

// Rank 0 speaks for all. A launcher may end the others as soon as one has failed (srun
// --kill-on-bad-exit): nobody ends before it has spoken and ended, unless that takes too long.
void Star::wait_for_end_of_zero() {
  const Deadline deadline = in_seconds(4);
  char type = 0;
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
  if (options_.rank == 0) tell_all('F', failure_text(failure));
  changed_.notify_all();
  if (!failing) on_failure_(failure);
}

void Star::tell_all(char type, const std::string& body) {
  const std::lock_guard<std::mutex> lock(sending_);
  for (const Socket& peer : peers_) {
    if (!peer.open()) continue;
    try {
      send_message(peer, type, body);
    } catch (const CommunicationError&) {  // gone; its end is seen by the watch
    }
  }
}

std::string Star::wait_for(std::unique_lock<std::mutex>* lock, size_t peer) {
  changed_.wait(*lock, [&] { return !inbox_[peer].empty() || failure_ || done_[peer] != 0; });
  if (inbox_[peer].empty() && failure_)
    throw CommunicationError(fmt::format("rank {} failed: {}", failure_->rank, failure_->message));
  if (inbox_[peer].empty())
    throw CommunicationError(
        fmt::format("rank {} ended its run before this rank did: give both the same flags", peer));
  std::string body = std::move(inbox_[peer].front());
  inbox_[peer].pop_front();
  return body;
}

std::vector<std::string> Star::exchange(const std::string& mine) {
  const auto count = static_cast<size_t>(options_.size);
  std::vector<std::string> all(count);
  if (count == 1) return {mine};
  if (options_.rank != 0) tell_all('X', mine);
  std::unique_lock<std::mutex> lock(mutex_);
  if (options_.rank != 0) {
    const std::string body = wait_for(&lock, 0);
    Reader in(body);
    for (std::string& one : all) one = in.text();
    return all;
  }
  all[0] = mine;
  for (size_t r = 1; r < count; ++r) all[r] = wait_for(&lock, r);
  lock.unlock();
  std::string body;
  for (const std::string& one : all) put(&body, one);
  tell_all('X', body);
  return all;
}

Failure Star::fail(int code, const std::string& message, bool consequence) {
  Failure mine;
  mine.rank = options_.rank;
  mine.host = options_.host;
  mine.code = code;
  mine.message = message;
  if (options_.size == 1) return mine;
  std::unique_lock<std::mutex> lock(mutex_);
  if (consequence)
    changed_.wait_for(lock, std::chrono::seconds(5), [&] { return failure_.has_value(); });
  if (failure_) {  // another one's came first, and the watch is about to end this process
    Failure first = *failure_;
    changed_.wait_for(lock, std::chrono::seconds(10), [] { return false; });
    return first;
  }
  failing_ = true;
  if (options_.rank == 0) {
    failure_ = mine;
    lock.unlock();
    tell_all('F', failure_text(mine));
    return mine;
  }
  lock.unlock();
  tell_all('F', failure_text(mine));
  lock.lock();
  changed_.wait_for(lock, std::chrono::seconds(10), [&] { return failure_.has_value(); });
  if (failure_ && failure_->known_to_zero) return *failure_;
  mine.known_to_zero = false;
  return mine;
}

void Star::done() {
  if (!thread_.joinable()) return;
  tell_all('D', "");
  {
    std::unique_lock<std::mutex> lock(mutex_);
    const auto all_done = [&] {
      bool all = true;
      for (size_t r = 1; r < done_.size(); ++r) all = all && done_[r] != 0;
      return all || failure_;
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
