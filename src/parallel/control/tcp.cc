#include "src/parallel/control/tcp.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

#include "src/parallel/control/errors.h"

namespace tally::train {
namespace {

using Clock = std::chrono::steady_clock;

template <typename... Args>
[[noreturn]] void fail_connection(fmt::format_string<Args...> text, Args&&... args) {
  throw CommunicationError(fmt::format(text, std::forward<Args>(args)...));
}

void set_option(int fd, int level, int name, int value) {
  setsockopt(fd, level, name, &value, sizeof value);
}

// Sends small messages at once. A peer whose node died is noticed within half a minute.
void prepare(int fd) {
  set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, 10);
  set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, 5);
  set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, 4);
}

using Addresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

Addresses look_up_once(const std::string& host, int port, int* error) {
  addrinfo hints{};
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  *error = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  return {*error == 0 ? found : nullptr, freeaddrinfo};
}

constexpr auto patience_with_name_servers = std::chrono::seconds(10);

// Asks again while the name server does not answer.
Addresses look_up_until(const std::string& host, int port, Deadline deadline) {
  for (int pause = 5;; pause = std::min(pause * 2, 500)) {
    int error = 0;
    Addresses found = look_up_once(host, port, &error);
    if (found) return found;
    // A host name has no colon.
    if (error == EAI_ADDRFAMILY || host.find(':') != std::string::npos)
      fail_connection(
          "'{}' of rank 0 has no IPv4 address ({}), and ranks meet over IPv4: give one, or a name "
          "that has one, by MASTER_ADDR or --master-addr",
          host, gai_strerror(error));
    if (error != EAI_AGAIN || Clock::now() >= deadline)
      fail_connection(
          "the host name '{}' of rank 0 is unknown here ({}): correct MASTER_ADDR or "
          "--master-addr, "
          "or give the suffix that names its fast interface by --master-addr-suffix",
          host, gai_strerror(error));
    poll(nullptr, 0, std::min(pause, milliseconds_until(deadline)));
  }
}

std::string address_text(const sockaddr_in& address) {
  std::array<char, INET_ADDRSTRLEN> text{};
  inet_ntop(AF_INET, &address.sin_addr, text.data(), text.size());
  return text.data();
}

sockaddr_in name_of(const Socket& socket) {
  sockaddr_in address{};
  socklen_t size = sizeof address;
  if (getsockname(socket.fd(), reinterpret_cast<sockaddr*>(&address), &size) != 0)
    fail_connection("getsockname: {}", std::strerror(errno));
  return address;
}

struct NetworkInterface {
  std::string name, address;
  uint32_t number = 0, mask = 0;  // in the order of this host's bytes
};

std::vector<NetworkInterface> network_interfaces() {
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) fail_connection("the network interfaces cannot be listed");
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(all, freeifaddrs);
  std::vector<NetworkInterface> found;
  for (const ifaddrs* i = all; i != nullptr; i = i->ifa_next) {
    if (i->ifa_addr == nullptr || i->ifa_addr->sa_family != AF_INET) continue;
    sockaddr_in address{}, mask{};
    std::memcpy(&address, i->ifa_addr, sizeof address);
    if (i->ifa_netmask != nullptr) std::memcpy(&mask, i->ifa_netmask, sizeof mask);
    found.push_back({i->ifa_name, address_text(address), ntohl(address.sin_addr.s_addr),
                     ntohl(mask.sin_addr.s_addr)});
  }
  return found;
}

// Whether the address stands for many hosts. The system binds such a one, too, and nobody can
// connect to it.
bool is_of_many_hosts(const in_addr& address) {
  const uint32_t number = ntohl(address.s_addr);
  if (IN_MULTICAST(number) || number == INADDR_BROADCAST) return true;
  const auto interfaces = network_interfaces();
  return std::any_of(interfaces.begin(), interfaces.end(), [&](const NetworkInterface& i) {
    const uint32_t hosts = ~i.mask;  // a network of one or two hosts has no broadcast
    return hosts > 1 && i.mask != 0 && number == (i.number | hosts);
  });
}

}  // namespace

Socket::~Socket() {
  if (fd_ >= 0) close(fd_);
}

Deadline in_seconds(double seconds) {
  return Clock::now() +
         std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

int milliseconds_until(Deadline deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
  return static_cast<int>(std::clamp<int64_t>(left, 0, 1 << 30));
}

Socket listen_on(const std::string& address, int port) {
  int error = 0;
  const Addresses found = look_up_once(address, port, &error);
  if (!found) fail_connection("the address '{}' is unknown: {}", address, gai_strerror(error));
  sockaddr_in wanted{};
  std::memcpy(&wanted, found->ai_addr, sizeof wanted);
  if (is_of_many_hosts(wanted.sin_addr)) return Socket();
  Socket socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket.open()) fail_connection("a socket cannot be made: {}", std::strerror(errno));
  set_option(socket.fd(), SOL_SOCKET, SO_REUSEADDR, 1);
  if (bind(socket.fd(), found->ai_addr, found->ai_addrlen) != 0 ||
      listen(socket.fd(), SOMAXCONN) != 0) {
    if (errno == EADDRNOTAVAIL) return Socket();
    if (errno == EADDRINUSE)
      fail_connection(
          "port {} is in use on this host: give another by --master-port or MASTER_PORT", port);
    fail_connection("port {} of '{}' cannot be listened on: {}", port, address,
                    std::strerror(errno));
  }
  return socket;
}

int port_of(const Socket& socket) {
  return ntohs(name_of(socket).sin_port);
}

std::string local_address(const Socket& socket) {
  return address_text(name_of(socket));
}

std::string interface_address(const std::string& interface) {
  std::vector<std::string> names;
  for (const NetworkInterface& i : network_interfaces()) {
    if (i.name == interface) return i.address;
    names.push_back(i.name);
  }
  throw LaunchError(
      fmt::format("--network-interface: this host has no interface '{}' with an address; it has {}",
                  interface, fmt::join(names, ", ")));
}

std::vector<std::string> outer_addresses() {
  std::vector<std::string> found;
  for (const NetworkInterface& i : network_interfaces())
    if (!is_loopback(i.address)) found.push_back(i.address);
  return found;
}

std::vector<std::string> look_up(const std::string& host, Deadline deadline) {
  const Addresses all =
      look_up_until(host, 0, std::min(deadline, Clock::now() + patience_with_name_servers));
  std::vector<std::string> found;
  for (const addrinfo* i = all.get(); i != nullptr; i = i->ai_next) {
    sockaddr_in address{};
    std::memcpy(&address, i->ai_addr, sizeof address);
    found.push_back(address_text(address));
  }
  return found;
}

bool is_loopback(const std::string& address) {
  return address.rfind("127.", 0) == 0;
}

Socket accept_now(const Socket& listener) {
  Socket peer(accept4(listener.fd(), nullptr, nullptr, SOCK_CLOEXEC));
  if (peer.open()) prepare(peer.fd());
  return peer;
}

Socket connect_until(const std::string& host, int port, Deadline deadline) {
  const Deadline names_until = std::min(deadline, Clock::now() + patience_with_name_servers);
  for (int pause = 5;; pause = std::min(pause * 2, 500)) {
    const Addresses found = look_up_until(host, port, names_until);
    Socket socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (connect(socket.fd(), found->ai_addr, found->ai_addrlen) == 0) {
      prepare(socket.fd());
      return socket;
    }
    const std::string why = std::strerror(errno);
    if (Clock::now() >= deadline)
      fail_connection("{}:{} could not be reached: {}", host, port, why);
    poll(nullptr, 0, std::min(pause, milliseconds_until(deadline)));
  }
}

double seconds_since_answer(const Socket& socket) {
  tcp_info info{};
  socklen_t size = sizeof info;
  if (getsockopt(socket.fd(), IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return 0;
  return info.tcpi_last_ack_recv / 1000.0;
}

void send_all(const Socket& socket, const void* data, size_t bytes) {
  const char* at = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t n = send(socket.fd(), at, bytes, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail_connection("a message could not be sent: {}", std::strerror(errno));
    at += n;
    bytes -= static_cast<size_t>(n);
  }
}

bool receive_all(const Socket& socket, void* data, size_t bytes, Deadline deadline) {
  char* at = static_cast<char*>(data);
  while (bytes > 0) {
    pollfd wait{socket.fd(), POLLIN, 0};
    const int ready = poll(&wait, 1, milliseconds_until(deadline));
    if (ready == 0) return false;
    if (ready < 0) continue;
    const ssize_t n = recv(socket.fd(), at, bytes, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    at += n;
    bytes -= static_cast<size_t>(n);
  }
  return true;
}

}  // namespace tally::train
