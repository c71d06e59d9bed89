// The rendezvous of rendezvous.h. Its set-up is in star_setup.cc, what the main thread calls is in
// rendezvous.cc, and the thread that watches the other ranks is in star_watch.cc.
#pragma once

#include <array>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "src/parallel/control/door.h"
#include "src/parallel/control/heartbeat.h"
#include "src/parallel/control/operations.h"
#include "src/parallel/control/rendezvous.h"
#include "src/parallel/control/rendezvous_wire.h"
#include "src/parallel/control/tcp.h"
#include "src/parallel/control/waiting_notes.h"

namespace tally::train {

// The supervisor's news of a rank that was killed arrives within milliseconds of the loss of
// its connection, unless the host is very busy.
inline constexpr auto patience_for_news = std::chrono::seconds(1);
// The time for which a rank that has failed stays until rank 0 has reported it.
inline constexpr auto patience_with_zero = std::chrono::seconds(4);

class Star final : public Rendezvous {
 public:
  using Clock = std::chrono::steady_clock;
  Star(const RendezvousOptions& options, OnFailure on_failure);
  ~Star() override { stop(); }
  Star(const Star&) = delete;
  Star& operator=(const Star&) = delete;

  int rank() const override { return options_.rank; }
  int size() const override { return options_.size; }
  const std::string& address() const override { return address_; }
  OperationWatch& operations() override { return operations_; }
  std::vector<std::string> exchange(const std::string& mine, ExchangeKind kind) override;
  Failure fail(int code, const std::string& message, bool consequence) override;
  void done() override;
  Credential credential(const std::string& purpose) const override;
  void count_strangers(int more) override { strangers_ += more; }
  int strangers() const override { return strangers_; }

 private:
  // A failure of which better news may come until then: the supervisor knows the signal.
  struct Pending {
    Failure failure;
    Clock::time_point until;
  };
  // Rank 0 asks all ranks what they do, because one waits too long.
  struct Inquiry {
    std::vector<RankActivity> ranks;
    Clock::time_point until;
  };

  // Set-up.
  void meet_others(Deadline deadline);
  void find_token();
  std::vector<Socket> listen(Deadline deadline);
  void receive_all_ranks(Deadline deadline);
  void gather(Door* door, Deadline deadline);
  std::vector<int> missing_ranks() const;
  std::string waits_for(const std::vector<int>& missing) const;
  [[noreturn]] void give_up(const std::vector<int>& missing, int strangers);
  void admit(Visitor visitor);
  void expect_no_more(int rank, int ranks);
  void lose_waiting_ranks();
  void fail_start(const Failure& first);
  Failure own_fault() const;
  void visit_zero(Deadline deadline);
  void hear_zero(Deadline deadline, WaitingNotes* notes);

  // The functions of the watching thread.
  void watch();
  int milliseconds_until_due(Clock::time_point next) const;
  void look(SilenceWatch* silence);
  void take(size_t peer);
  void handle(size_t peer, Message type, std::string body);
  void take_news();
  std::optional<Failure> read_news();
  void send_heartbeats();
  void find_silent(SilenceWatch* silence, Clock::time_point now);
  void lose(size_t peer, const std::string& message, bool news_may_come = false);
  void close_peer(size_t peer);
  void wait_for_end_of_zero(std::chrono::seconds patience);
  void learn(const Failure& failure);  // not the one in pending_
  void find_late(Clock::time_point now, bool restart);
  void ask_all(Clock::time_point now);
  void conclude(bool all_answered);

  void send_to(size_t peer, Message type, const std::string& body);
  void send_to_all(Message type, const std::string& body);
  std::string wait_for(std::unique_lock<std::mutex>* lock, ExchangeKind kind, size_t peer);
  void stop();

  const RendezvousOptions options_;
  const OnFailure on_failure_;
  std::string address_ = "127.0.0.1";
  std::string token_;
  int strangers_ = 0;
  // The failure that ends the set-up, once reported; until when those that come are told of it; who
  // has come; and why a process was not let in that said it is a rank. Used by the set-up alone.
  std::optional<Failure> first_;
  Deadline told_until_;
  std::vector<char> came_;
  std::string refused_;
  std::vector<Socket> peers_;  // rank 0: by rank, its own entry closed; others: rank 0 alone
  std::vector<int> local_;     // each peer's process id, if it is on this host; else 0
  Socket wake_;
  std::thread thread_;
  OperationWatch operations_;
  int exchanges_ = -1;  // the group of exchange() in operations_

  // The state of the watching thread alone.
  std::vector<MessageBuffer> incoming_;
  std::optional<Pending> pending_;
  std::optional<Inquiry> inquiry_;
  Clock::time_point next_late_;  // when a wait that is too long is reported again
  int supervisor_ = -1;          // not owned; -1: none, or it is gone

  // One mutex for each peer: a peer that does not read delays only what is sent to it.
  std::vector<std::timed_mutex> sending_;
  std::mutex mutex_;
  std::condition_variable changed_;
  using Inbox = std::vector<std::deque<std::string>>;  // one for each sending rank
  std::array<Inbox, 2> inbox_;                         // one for each kind of exchange
  std::vector<std::string> hosts_;
  std::vector<char> done_;
  std::optional<Failure> failure_;
  bool failing_ = false, stopping_ = false;
};

}  // namespace tally::train
