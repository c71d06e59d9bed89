#include "src/parallel/control/door.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "src/parallel/control/errors.h"
#include "src/parallel/control/secret.h"

namespace tally::train {
namespace {

constexpr size_t nonce_bytes = 32;
// More strangers than this wait for nothing: the oldest go.
constexpr size_t most_strangers = 64;

enum class Side { listener, visitor };

std::string proof_by(Side side, const Credential& credential, const std::string& nonces,
                     const std::string& words) {
  std::string text;
  put(&text, own_protocol());
  put(&text, side == Side::listener ? "listener" : "visitor");
  put(&text, credential.run);
  put(&text, credential.purpose);
  put(&text, nonces);
  put(&text, words);
  return proof_of(credential.token, text);
}

// False when it is gone, or does not read.
bool send_now(const Socket& to, Message type, const std::string& body) {
  const std::string whole = whole_message(type, body);
  return send(to.fd(), whole.data(), whole.size(), MSG_NOSIGNAL | MSG_DONTWAIT) ==
         static_cast<ssize_t>(whole.size());
}

}  // namespace

Door::Door(std::vector<Socket> listeners, Credential credential, size_t expected,
           Socket gives_token)
    : listeners_(std::move(listeners)),
      gives_token_(std::move(gives_token)),
      credential_(std::move(credential)),
      most_waiting_(expected + most_strangers) {
  // A visitor may be gone again before it is taken in.
  for (const Socket& l : listeners_) fcntl(l.fd(), F_SETFL, fcntl(l.fd(), F_GETFL) | O_NONBLOCK);
}

std::optional<Visitor> Door::next(Deadline deadline, const std::vector<Socket>& inside) {
  while (proven_.empty()) {
    if (milliseconds_until(deadline) == 0 || poll_all(deadline, inside)) return std::nullopt;
  }
  Visitor first = std::move(proven_.front());
  proven_.pop_front();
  return first;
}

// Returns whether something came from inside.
bool Door::poll_all(Deadline deadline, const std::vector<Socket>& inside) {
  std::vector<pollfd> fds;
  for (const Stranger& s : waiting_) fds.push_back({s.socket.fd(), POLLIN, 0});
  for (const Socket& l : listeners_) fds.push_back({l.fd(), POLLIN, 0});
  fds.push_back({gives_token_.fd(), POLLIN, 0});
  for (const Socket& s : inside) fds.push_back({s.fd(), POLLIN, 0});
  if (poll(fds.data(), fds.size(), milliseconds_until(deadline)) < 0) {
    if (errno == EINTR) return false;
    throw CommunicationError(fmt::format("poll: {}", std::strerror(errno)));
  }
  size_t i = 0;
  for (auto s = waiting_.begin(); s != waiting_.end(); ++i) {
    const bool stays = fds[i].revents == 0 || hear(&*s);
    if (!stays && s->socket.open()) ++strangers_;
    s = stays ? std::next(s) : waiting_.erase(s);
  }
  for (size_t l = 0; l < listeners_.size(); ++l, ++i)
    if (fds[i].revents != 0) take_new(listeners_[l]);
  if (fds[i].revents != 0) take_new(gives_token_);
  return std::any_of(fds.begin() + static_cast<std::ptrdiff_t>(i) + 1, fds.end(),
                     [](const pollfd& fd) { return fd.revents != 0; });
}

void Door::take_new(const Socket& listener) {
  Socket socket = accept_now(listener);
  const bool no_more_files = !socket.open() && (errno == EMFILE || errno == ENFILE);
  if (!socket.open() && !no_more_files) return;
  if (no_more_files && waiting_.empty())
    throw CommunicationError(
        fmt::format("a rank that connects cannot be taken in: {}", std::strerror(errno)));
  if (waiting_.size() >= most_waiting_ || no_more_files) {
    waiting_.pop_front();
    ++strangers_;
  }
  if (no_more_files) return;  // there is room for the next attempt
  if (&listener == &gives_token_) return give_token(socket);
  waiting_.emplace_back().socket = std::move(socket);
}

void Door::give_token(const Socket& asks) {
  if (!is_of_this_user(asks)) {
    ++strangers_;
  } else {
    send(asks.fd(), credential_.token.data(), credential_.token.size(),
         MSG_NOSIGNAL | MSG_DONTWAIT);
  }
}

// Returns whether it is still a stranger that may prove itself. A visitor has no socket afterwards.
bool Door::hear(Stranger* stranger) {
  const bool open = stranger->incoming.receive(stranger->socket);
  Message type{};
  std::string body;
  while (stranger->incoming.next(&type, &body)) {
    const bool first = stranger->nonces.empty();
    if (type == Message::proof && !first) verify(stranger, body);
    if (type != Message::hello || !first || !greet(stranger, body)) return false;
  }
  return open && !stranger->incoming.broken();
}

bool Door::greet(Stranger* stranger, const std::string& hello) {
  Reader in(hello);
  const std::string protocol = in.text(), nonce = in.text();
  if (protocol != own_protocol())
    send_now(stranger->socket, Message::refused,
             "it is another version of tally-train: start the same build on every rank");
  if (protocol != own_protocol() || nonce.size() != nonce_bytes) return false;
  const std::string own = random_bytes(nonce_bytes);
  stranger->nonces = nonce + own;
  std::string challenge;
  put(&challenge, own);
  put(&challenge, proof_by(Side::listener, credential_, stranger->nonces, ""));
  return send_now(stranger->socket, Message::challenge, challenge);
}

void Door::verify(Stranger* stranger, const std::string& proof) {
  Reader in(proof);
  const std::string words = in.text();
  if (same_bytes(in.text(), proof_by(Side::visitor, credential_, stranger->nonces, words)))
    proven_.push_back({std::move(stranger->socket), words});
}

void Door::admit(const Visitor& visitor) {
  send_now(visitor.socket, Message::admitted, "");
}

void Door::refuse(const Visitor& visitor, const std::string& why) {
  send_now(visitor.socket, Message::refused, why);
}

namespace {

[[noreturn]] void not_ours(const DoorAddress& door, const std::string& why) {
  throw CommunicationError(fmt::format("{} at {}:{}: {}", door.whose, door.host, door.port, why));
}

// A connection on which nothing comes any more is tried again: false. Words of somebody who has not
// proven that he knows the token are not shown.
bool introduce(const Socket& socket, const DoorAddress& door, const Credential& credential,
               const std::string& words, Deadline deadline) {
  const std::string nonce = random_bytes(nonce_bytes);
  std::string body;
  put(&body, own_protocol());
  put(&body, nonce);
  if (!send_now(socket, Message::hello, body)) return false;
  Message type{};
  if (!receive_message(socket, deadline, &type, &body, longest_greeting)) return false;
  if (type == Message::refused)
    not_ours(door, "it is another version of tally-train: start the same build on every rank");
  Reader in(body);
  const std::string nonces = nonce + in.text();
  if (type != Message::challenge ||
      !same_bytes(in.text(), proof_by(Side::listener, credential, nonces, "")))
    not_ours(door,
             "another run listens there, or a rank with another token: give each run its own "
             "--master-port or MASTER_PORT, and all ranks of a run the same token");
  std::string proof;
  put(&proof, words);
  put(&proof, proof_by(Side::visitor, credential, nonces, words));
  if (!send_now(socket, Message::proof, proof)) return false;
  if (!receive_message(socket, deadline, &type, &body, longest_greeting)) return false;
  if (type == Message::refused) not_ours(door, body);
  return type == Message::admitted;
}

}  // namespace

Socket enter(const DoorAddress& door, Credential* credential, const std::string& words,
             Deadline deadline, const std::function<void()>& before) {
  for (int pause = 5;; pause = std::min(pause * 2, 500)) {
    Socket socket = connect_until(door.host, door.port, deadline);
    if (before) before();
    if (introduce(socket, door, *credential, words, deadline)) return socket;
    if (milliseconds_until(deadline) == 0) not_ours(door, "it does not answer");
    poll(nullptr, 0, std::min(pause, milliseconds_until(deadline)));
  }
}

}  // namespace tally::train
