// The door of a port on which the ranks of a run wait for each other: only those who know the run's
// token come in. Both sides prove that they know it, and none sends it:
//
//   visitor:  hello      protocol, its nonce
//   listener: challenge  the listener's nonce, proof(listener, run, purpose, both nonces)
//   visitor:  proof      what it says of itself, proof(visitor, run, purpose, both nonces, that)
//   listener: admitted, or refused with a sentence
//
// A nonce is 32 random bytes of this connection, so that what somebody has recorded opens no door
// again. `purpose` names the port, so that a proof for one port is none for another. Later messages
// on the connection are neither encrypted nor signed.
#pragma once

#include <deque>
#include <functional>
#include <list>
#include <optional>
#include <string>
#include <vector>

#include "src/parallel/control/rendezvous_wire.h"
#include "src/parallel/control/tcp.h"
#include "src/parallel/control/token.h"

namespace tally::train {

// One that has proven that it knows the token.
struct Visitor {
  Socket socket;
  std::string words;  // the visitor's introduction
};

class Door {
 public:
  // `expected`: how many visitors may come at the same time. `gives_token`: of listen_for_user(),
  // where processes of this user get the token; not open: nobody gets it here.
  Door(std::vector<Socket> listeners, Credential credential, size_t expected,
       Socket gives_token = {});
  // The next visitor; nullopt after the deadline, or when something comes from one of `inside`,
  // those that have been let in. All that have come are listened to at once, and one that is silent
  // delays no other. Throws CommunicationError.
  std::optional<Visitor> next(Deadline deadline, const std::vector<Socket>& inside = {});
  // Says this to a visitor. One that is gone already is noticed later.
  static void admit(const Visitor& visitor);
  static void refuse(const Visitor& visitor, const std::string& why);
  // Connections that have not shown that they know the token.
  int strangers() const { return strangers_ + static_cast<int>(waiting_.size()); }

 private:
  struct Stranger {
    Socket socket;
    MessageBuffer incoming{longest_greeting};
    std::string nonces;  // both; empty: it has not said hello
  };

  bool poll_all(Deadline deadline, const std::vector<Socket>& inside);
  void take_new(const Socket& listener);
  void give_token(const Socket& asks);
  bool hear(Stranger* stranger);
  bool greet(Stranger* stranger, const std::string& hello);
  void verify(Stranger* stranger, const std::string& proof);

  const std::vector<Socket> listeners_;
  const Socket gives_token_;
  const Credential credential_;
  const size_t most_waiting_;
  std::list<Stranger> waiting_;  // the oldest first
  std::deque<Visitor> proven_;
  int strangers_ = 0;  // strangers that have left
};

// Connects to a door, proves that this process knows the credential, and returns the connection
// when it was admitted. `before`: called when somebody listens there, to complete the credential;
// may be null. `whose`: "rank 0", for messages. Throws CommunicationError.
struct DoorAddress {
  std::string host;
  int port = 0;
  std::string whose;
};
Socket enter(const DoorAddress& door, Credential* credential, const std::string& words,
             Deadline deadline, const std::function<void()>& before);

}  // namespace tally::train
