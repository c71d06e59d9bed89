// The messages of a rendezvous (rendezvous.cc) on a TCP connection. Both ends are the same program
// on the same kind of processor, so numbers are sent as they are in memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "src/parallel/control/rendezvous.h"
#include "src/parallel/control/tcp.h"

namespace tally::train {

// A heartbeat is its type alone, one byte, so that it is sent whole or not at all. Every other
// message has a header and a body.
enum class Message : char {
  hello = 'H',       // a visitor's; this and the next four are door.h's
  challenge = 'C',   // to a visitor
  proof = 'P',       // a visitor's
  admitted = 'M',    // to a visitor
  refused = 'R',     // to a visitor: why not
  welcome = 'W',     // from rank 0: all have come
  exchange = 'X',    // a text
  background = 'Y',  // a text of an exchange in the background
  failure = 'F',     // a rank's
  done = 'D',        // the end of a good run
  heartbeat = 'B',   // the sender is alive
  late = 'L',        // to rank 0: the sender waits too long for others
  question = 'Q',    // from rank 0: what are you doing?
  activity = 'A',    // the answer
};

inline bool is_exchange(Message type) {
  return type == Message::exchange || type == Message::background;
}

// A visitor's description of itself to rank 0.
struct Hello {
  int rank = 0, size = 0;
  std::string host;
  std::string process;  // process_name()
  std::optional<Fault> fault = std::nullopt;
};

// The protocol of this program; another version may have another one.
const std::string& own_protocol();

// Messages made of texts and numbers.
void put(std::string* out, const std::string& text);
void put(std::string* out, int number);
// Reads what put() wrote; a message that is too short gives empty texts and zeros.
class Reader {
 public:
  explicit Reader(const std::string& text) : text_(text) {}
  std::string text();
  int number();

 private:
  const std::string& text_;
  size_t at_ = 0;
};

std::string encode(const Hello& hello);
Hello decode_hello(const std::string& body);
std::string encode(const Failure& failure);
Failure decode_failure(const std::string& body);

// The longest message, and the longest one of somebody whom this process does not know.
inline constexpr uint32_t longest_message = 1U << 28, longest_greeting = 1U << 12;

// A message as it is sent.
std::string whole_message(Message type, const std::string& body);
// Throws CommunicationError.
void send_message(const Socket& to, Message type, const std::string& body);
// Never blocks. A heartbeat that does not fit the send buffer is dropped, because the peer has
// unread messages anyway.
void send_heartbeat(const Socket& to);
// Bytes that have arrived from a peer, read without waiting for the rest of a message.
class MessageBuffer {
 public:
  explicit MessageBuffer(uint32_t longest = longest_message) : longest_(longest) {}
  // Takes what is there; false when the peer closed.
  bool receive(const Socket& from);
  // The next whole message, if there is one.
  bool next(Message* type, std::string* body);
  // The bytes are not a message.
  bool broken() const { return broken_; }

 private:
  uint32_t longest_;
  std::string bytes_;
  bool broken_ = false;
};

// False when the peer closed, the deadline passed, or this is not a message of at most `longest`
// bytes.
bool receive_message(const Socket& from, Deadline deadline, Message* type, std::string* body,
                     uint32_t longest = longest_message);

}  // namespace tally::train
