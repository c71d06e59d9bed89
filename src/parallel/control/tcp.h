// TCP between the processes of a run, used by rendezvous.cc and sockets.cc.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace tally::train {

// A file descriptor that closes with its owner.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int fd) : fd_(fd) {}
  Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Socket();
  int fd() const { return fd_; }
  bool open() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

using Deadline = std::chrono::steady_clock::time_point;
Deadline in_seconds(double seconds);        // from now on
int milliseconds_until(Deadline deadline);  // at least 0

// Listens on `address` and `port` (0: any free one). Not open() where that is not an address of
// this host. Throws CommunicationError; a port in use is said to be so.
Socket listen_on(const std::string& address, int port);
int port_of(const Socket& socket);
// This end's numeric address of a connected socket, as its peer can reach it.
std::string local_address(const Socket& socket);
// The numeric IPv4 address of a network interface ("ib0"). Throws LaunchError when there is none of
// that name.
std::string interface_address(const std::string& interface);
// The addresses of this host's interfaces, without loopback.
std::vector<std::string> outer_addresses();
// The numeric IPv4 addresses of rank 0's host. Throws CommunicationError with one sentence when the
// name is unknown on this host, after at most ten seconds: a name server that is overloaded by a
// job's start answers late.
std::vector<std::string> look_up(const std::string& host, Deadline deadline);
bool is_loopback(const std::string& address);  // 127.0.0.1, or another of 127.0.0.0/8
// The next connection of a listener that does not block; not open(), with errno, where there is
// none.
Socket accept_now(const Socket& listener);
// Connects, and retries while nobody listens there. Throws CommunicationError after the deadline,
// and as look_up() does when the name is unknown.
Socket connect_until(const std::string& host, int port, Deadline deadline);

// The time since the system of the peer's host acknowledged something, whatever the peer's process
// does; 0 where the system does not say.
double seconds_since_answer(const Socket& socket);

// All bytes, or CommunicationError (send) or false (receive: the peer closed or the deadline
// passed).
void send_all(const Socket& socket, const void* data, size_t bytes);
bool receive_all(const Socket& socket, void* data, size_t bytes, Deadline deadline);

}  // namespace tally::train
