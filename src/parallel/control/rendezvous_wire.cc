#include "src/parallel/control/rendezvous_wire.h"

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>

namespace tally::train {
namespace {

struct Header {
  Message type{};
  char unused[3] = {};
  uint32_t bytes = 0;
};

}  // namespace

const std::string& own_protocol() {
  static const std::string protocol = "tallyrv5";
  return protocol;
}

void put(std::string* out, const std::string& text) {
  const auto size = static_cast<uint32_t>(text.size());
  out->append(reinterpret_cast<const char*>(&size), sizeof size);
  out->append(text);
}

void put(std::string* out, int number) {
  put(out, std::string(reinterpret_cast<const char*>(&number), sizeof number));
}

std::string Reader::text() {
  uint32_t size = 0;
  if (text_.size() - at_ < sizeof size) return "";
  std::memcpy(&size, text_.data() + at_, sizeof size);
  at_ += sizeof size;
  std::string out = text_.substr(at_, size);
  at_ += out.size();
  return out;
}

int Reader::number() {
  const std::string bytes = text();
  int value = 0;
  if (bytes.size() == sizeof value) std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

std::string encode(const Hello& hello) {
  std::string body;
  put(&body, hello.rank);
  put(&body, hello.size);
  put(&body, hello.host);
  put(&body, hello.process);
  if (!hello.fault) return body;
  put(&body, hello.fault->ranks);
  put(&body, hello.fault->code);
  put(&body, hello.fault->message.substr(0, longest_greeting / 2));
  return body;
}

Hello decode_hello(const std::string& body) {
  Reader in(body);
  Hello hello;
  hello.rank = in.number();
  hello.size = in.number();
  hello.host = in.text();
  hello.process = in.text();
  if (const int ranks = in.number(); ranks > 0) {
    hello.fault.emplace().ranks = ranks;
    hello.fault->code = in.number();
    hello.fault->message = in.text();
  }
  return hello;
}

std::string encode(const Failure& f) {
  std::string body;
  put(&body, f.rank);
  put(&body, f.code);
  put(&body, f.host);
  put(&body, f.message);
  return body;
}

Failure decode_failure(const std::string& body) {
  Reader in(body);
  Failure f;
  f.rank = in.number();
  f.code = in.number();
  f.host = in.text();
  f.message = in.text();
  return f;
}

std::string whole_message(Message type, const std::string& body) {
  Header header;
  header.type = type;
  header.bytes = static_cast<uint32_t>(body.size());
  std::string whole(reinterpret_cast<const char*>(&header), sizeof header);
  return whole + body;
}

void send_message(const Socket& to, Message type, const std::string& body) {
  const std::string whole = whole_message(type, body);
  send_all(to, whole.data(), whole.size());
}

void send_heartbeat(const Socket& to) {
  const auto type = Message::heartbeat;
  // A peer that is gone is noticed by the reader.
  [[maybe_unused]] const ssize_t n = send(to.fd(), &type, sizeof type, MSG_NOSIGNAL | MSG_DONTWAIT);
}

bool MessageBuffer::receive(const Socket& from) {
  std::array<char, 1 << 16> piece;
  const ssize_t n = recv(from.fd(), piece.data(), piece.size(), MSG_DONTWAIT);
  if (n < 0) return errno == EAGAIN || errno == EINTR;
  bytes_.append(piece.data(), static_cast<size_t>(n));
  return n > 0;
}

bool MessageBuffer::next(Message* type, std::string* body) {
  if (bytes_.empty() || broken_) return false;
  *type = static_cast<Message>(bytes_.front());
  if (*type == Message::heartbeat) {
    bytes_.erase(0, 1);
    return true;
  }
  Header header;
  if (bytes_.size() < sizeof header) return false;
  std::memcpy(static_cast<void*>(&header), bytes_.data(), sizeof header);
  broken_ = header.bytes > longest_;
  if (broken_ || bytes_.size() - sizeof header < header.bytes) return false;
  body->assign(bytes_, sizeof header, header.bytes);
  bytes_.erase(0, sizeof header + header.bytes);
  return true;
}

bool receive_message(const Socket& from, Deadline deadline, Message* type, std::string* body,
                     uint32_t longest) {
  Header header;
  body->clear();
  if (!receive_all(from, &header, sizeof header.type, deadline)) return false;
  *type = header.type;
  if (header.type == Message::heartbeat) return true;
  char* rest = reinterpret_cast<char*>(&header) + sizeof header.type;
  if (!receive_all(from, rest, sizeof header - sizeof header.type, deadline) ||
      header.bytes > longest)
    return false;
  body->resize(header.bytes);
  return receive_all(from, body->data(), body->size(), deadline);
}

}  // namespace tally::train
