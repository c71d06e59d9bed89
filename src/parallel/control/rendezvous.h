// The connections of a run's processes before a communicator exists, by which all of them learn
// when one fails. A star of TCP connections with rank 0 in the middle, kept until the end.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "src/data/text/exit_codes.h"
#include "src/parallel/control/errors.h"
#include "src/parallel/control/token.h"

namespace tally::train {

// The first failure of a run, the same on all ranks.
struct Failure {
  int rank = 0;
  std::string host;
  int code = exit_error;      // exit code that the run ends with
  std::string message;        // one sentence
  bool known_to_zero = true;  // rank 0 knows of it, and reports it
};

// The reason why a rank cannot take part, known before it meets the others.
struct Fault {
  int code = exit_bad_input;  // exit code
  std::string message;
  int ranks = 1;  // it and those after it, which no process will be
};

struct RendezvousOptions {
  int rank = 0, size = 1;
  std::string address;  // rank 0's
  int port = 0;
  int listening_fd = -1;         // rank 0: a socket that listens already; owned from here on
  std::string host;              // this host's name, for messages
  std::string run;               // identifies the run (a job id); other runs are rejected
  TokenSource token;             // the ranks know each other by it; see also Credential
  std::string interface;         // a network interface on which rank 0 listens as well; "": none
  bool one_host = false;         // all ranks are known to be on one host
  double timeout_seconds = 600;  // to wait for all ranks at the start
  // A rank that sends no sign of life for so long has failed. Every rank sends heartbeats from a
  // thread of its own, also while it computes, tunes or writes a checkpoint. The first limit is for
  // a process whose host answers, or that is known to be stopped; the second for hosts and
  // networks, and for a process of this host that is not stopped but gets no processor.
  double silence_seconds = 6;
  double host_silence_seconds = 60;
  // An operation of a group, or an exchange, that waits longer has failed.
  double operation_seconds = 600;
  // A packet socket to the supervisor of this host's ranks, from which failures arrive (encode() in
  // rendezvous_wire.h); not owned. -1: none.
  int supervisor_fd = -1;
  std::optional<Fault> fault;  // the others are told of it
  // Nobody collects this rank's output together with rank 0's: what ends the start is reported
  // here, too, and not by rank 0 alone.
  bool own_output = false;
  // Says for what this rank waits (waiting_notes.h), and reports the failure that ends the start.
  // Null: not.
  std::function<void(const std::string&)> say;
  std::function<void(const Failure&)> report;
};

class OperationWatch;

// Exchanges of one kind follow each other on all ranks. Exchanges of a background thread (a
// checkpoint that is being written) are between any of the main thread's.
enum class ExchangeKind : uint8_t { main, background };

class Rendezvous {
 public:
  // Called once, by a thread of its own, when another rank failed, vanished or went silent. It
  // should end the process, because its peers do not wait any longer. Not called on a rank that is
  // in fail().
  using OnFailure = std::function<void(const Failure&)>;

  // Returns when all ranks have connected. One rank alone returns at once. Throws
  // CommunicationError that names the missing ranks, LaunchError where the token is missing, and
  // StartFailed where this or another rank cannot take part.
  static std::unique_ptr<Rendezvous> meet(const RendezvousOptions& options, OnFailure on_failure);
  virtual ~Rendezvous() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  // This host's numeric address as rank 0 sees it.
  virtual const std::string& address() const = 0;
  // The operations of this rank with others, for all that make it wait.
  virtual OperationWatch& operations() = 0;
  // Collective: every rank's text, in the order of ranks. For set-up, not for steps. One thread at
  // a time for each kind.
  virtual std::vector<std::string> exchange(const std::string& mine,
                                            ExchangeKind kind = ExchangeKind::main) = 0;
  // This rank has failed: notifies all others and returns the first failure, which may be another
  // rank's. Rank 0 reports it, or this rank where !known_to_zero. `consequence`: a peer may have
  // failed first (a connection was lost), so this waits some seconds for news of that.
  virtual Failure fail(int code, const std::string& message, bool consequence = false) = 0;
  // A good end. Other ranks that end after this call do not count as failed. Rank 0 waits a minute
  // for the others, and they for rank 0, because a launcher that ends all processes when one has
  // ended with a non-zero exit code must not interrupt what rank 0 still writes.
  virtual void done() = 0;
  // The knowledge of the processes of this run, for a port of another kind (door.h).
  virtual Credential credential(const std::string& purpose) const = 0;
  // Connections to ports of this process by somebody who did not know the token. Connections of the
  // rendezvous itself are counted. Not for several threads.
  virtual void count_strangers(int more) = 0;
  virtual int strangers() const = 0;
};

// "20 connections were refused: ...".
std::string describe_strangers(int count);

}  // namespace tally::train
