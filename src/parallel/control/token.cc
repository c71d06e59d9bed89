#include "src/parallel/control/token.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>

#include "src/parallel/control/errors.h"
#include "src/parallel/control/secret.h"

namespace tally::train {
namespace {

constexpr size_t shortest = 32, longest = 4096;

template <typename... Args>
[[noreturn]] void fail_token(fmt::format_string<Args...> text, Args&&... args) {
  throw LaunchError(fmt::format(text, std::forward<Args>(args)...));
}

// Root may read everybody's files, and a file server may give its files to another user.
void check_private(int fd, const std::string& path) {
  struct stat status {};
  if (fstat(fd, &status) != 0) fail_token("the token '{}': {}", path, std::strerror(errno));
  if (!S_ISREG(status.st_mode)) fail_token("the token '{}' is not a file", path);
  if ((status.st_mode & 077U) != 0)
    fail_token(
        "the token '{}' is not secret: its mode is {:03o}, which lets others read or write it; "
        "chmod 600 makes it yours alone",
        path, status.st_mode & 0777U);
  if (status.st_uid != geteuid() && geteuid() != 0)
    fail_token("the token '{}' belongs to another user", path);
}

}  // namespace

std::string new_token() {
  std::string text;
  for (const char byte : random_bytes(32))
    text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return text;
}

void check_token(const std::string& text, const std::string& where) {
  if (text.size() >= shortest) return;
  fail_token(
      "{} has {} characters, and a token of less than {} can be guessed: openssl rand -hex 32 "
      "makes one",
      where, text.size(), shortest);
}

std::optional<std::string> read_token(const std::string& path) {
  // O_NONBLOCK, because a pipe would wait for a writer.
  const Socket file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.open() && errno == ENOENT) return std::nullopt;
  if (!file.open()) fail_token("the token '{}' cannot be read: {}", path, std::strerror(errno));
  check_private(file.fd(), path);
  std::array<char, longest> bytes;
  std::string text;
  for (;;) {
    const ssize_t n = read(file.fd(), bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail_token("the token '{}' cannot be read: {}", path, std::strerror(errno));
    if (n == 0) break;
    text.append(bytes.data(), static_cast<size_t>(n));
    if (text.size() > longest) fail_token("the token '{}' has more than {} bytes", path, longest);
  }
  const char* white = " \t\r\n";
  const size_t first = std::min(text.find_first_not_of(white), text.size());
  text = text.substr(first, text.find_last_not_of(white) + 1 - first);
  check_token(text, fmt::format("the token '{}'", path));
  return text;
}

namespace {

// Calls bind or connect with the socket's name, which the kernel forgets with its owner.
template <typename Call>
int with_name(Call call, const Socket& socket, const std::string& address) {
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  const std::string text = '\0' + ("tally-train " + address);
  const size_t size = text.copy(name.sun_path, sizeof name.sun_path);
  return call(socket.fd(), reinterpret_cast<const sockaddr*>(&name),
              static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + size));
}

// A stranger's listener that takes nobody in cannot hold it.
Socket unix_socket() {
  Socket made(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!made.open())
    throw CommunicationError(fmt::format("a socket cannot be made: {}", std::strerror(errno)));
  return made;
}

}  // namespace

Socket listen_for_user(const std::string& address) {
  Socket made = unix_socket();
  if (with_name(bind, made, address) == 0 && listen(made.fd(), SOMAXCONN) == 0) return made;
  throw CommunicationError(
      errno == EADDRINUSE
          ? fmt::format("{} is in use: give another port by --master-port or MASTER_PORT", address)
          : fmt::format("the ranks' token cannot be handed out at {}: {}", address,
                        std::strerror(errno)));
}

bool is_of_this_user(const Socket& connected) {
  ucred peer{};
  socklen_t size = sizeof peer;
  return getsockopt(connected.fd(), SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
         peer.uid == geteuid();
}

std::string ask_for_token(const std::string& address, Deadline deadline) {
  const Socket socket = unix_socket();
  // Too many others ask.
  while (with_name(connect, socket, address) != 0 && errno == EAGAIN &&
         milliseconds_until(deadline) > 0)
    poll(nullptr, 0, std::min(5, milliseconds_until(deadline)));
  std::string token(new_token().size(), '\0');
  if (is_of_this_user(socket) && receive_all(socket, token.data(), token.size(), deadline))
    return token;
  throw CommunicationError(fmt::format(
      "who listens at {} is not a rank of this user without a token: give each run its own "
      "--master-port or MASTER_PORT, and all ranks of a run the same {} or none",
      address, token_variable));
}

TokenFile::TokenFile(std::string path) : path_(std::move(path)) {
  // The file appears with its text. A link that somebody planted is replaced, and not followed.
  const std::string made = fmt::format("{}.{}", path_, getpid());
  unlink(made.c_str());
  const Socket file(open(made.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  const auto size = static_cast<ssize_t>(token_.size());
  if (!file.open() || write(file.fd(), token_.data(), token_.size()) != size ||
      fsync(file.fd()) != 0 || rename(made.c_str(), path_.c_str()) != 0) {
    const std::string why = std::strerror(errno);
    unlink(made.c_str());
    fail_token(
        "the ranks meet by a token in the folder in which they start, and '{}' cannot be written "
        "({}): start them in a folder of yours that all their hosts share, or set {} on every rank",
        path_, why, token_variable);
  }
  try {
    check_private(file.fd(), path_);  // there are file systems on which modes mean nothing
  } catch (const LaunchError&) {
    unlink(path_.c_str());
    throw;
  }
}

TokenFile::~TokenFile() {
  unlink(path_.c_str());
}

}  // namespace tally::train
