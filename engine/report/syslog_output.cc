#include <fmt/format.h>
#include <netdb.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>

#include "engine/base/accounts.h"
#include "engine/base/duration.h"
#include "engine/base/text.h"
#include "engine/python/python_format.h"
#include "engine/report/report.h"

namespace tally {
namespace {

constexpr const char* kDefaultFormat = "jube[%(process)s]: %(message)s";
constexpr int kUserInfo = (1 << 3) | 6;  // facility user, severity informational

std::string message(const Syslog& syslog, const std::string& line) {
  std::string text = syslog.format.empty() ? kDefaultFormat : syslog.format;
  std::string process = std::to_string(::getpid());
  replace_all(text, "%(process)s", process);
  replace_all(text, "%(process)d", process);
  replace_all(text, "%(asctime)s", local_time(std::time(nullptr)) + ",000");
  replace_all(text, "%(levelname)s", "INFO");
  replace_all(text, "%(name)s", syslog.name.value);
  replace_all(text, "%(message)s", line);
  return fmt::format("<{}>{}", kUserInfo, text);
}

// Returns a socket to the log service for send(), or -1 with *error.
int connect_to(const Syslog& syslog, std::string* error) {
  if (!syslog.address.empty()) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (syslog.address.size() >= sizeof address.sun_path) {
      *error = "the socket's path is too long";
      return -1;
    }
    std::memcpy(address.sun_path, syslog.address.data(), syslog.address.size());
    int file = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (file >= 0 && ::connect(file, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) {
      return file;
    }
    *error = std::strerror(errno);
    if (file >= 0) ::close(file);
    return -1;
  }
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  std::string port = syslog.port.empty() ? "514" : syslog.port;
  const std::string host = host_to_resolve(syslog.host);
  int code = host.empty() ? EAI_NONAME : ::getaddrinfo(host.c_str(), port.c_str(), &hints, &found);
  if (code != 0) {
    *error = ::gai_strerror(code);
    return -1;
  }
  int file = -1;
  for (addrinfo* a = found; a != nullptr && file < 0; a = a->ai_next) {
    file = ::socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC, a->ai_protocol);
    if (file >= 0 && ::connect(file, a->ai_addr, a->ai_addrlen) != 0) {
      ::close(file);
      file = -1;
    }
  }
  if (file < 0) *error = std::strerror(errno);
  ::freeaddrinfo(found);
  return file;
}

}  // namespace

std::vector<std::string> syslog_lines(const Syslog& syslog, const std::vector<Record>& rows,
                                      bool exact) {
  std::vector<std::string> lines;
  for (const Record& row : rows) {
    std::string line;
    for (const Column& key : syslog.keys) {
      const Value& value = row.values.at(key.name.value);
      std::string text = value.str();
      std::string error;
      if (!key.format.empty() && !value.none())
        format_cell(value, key.format, exact, &text, &error);
      // The name is used, not the title, as in JUBE's messages.
      line += (line.empty() ? "" : " ") + key.name.value + "=" + text;
    }
    lines.push_back(std::move(line));
  }
  return lines;
}

Status send_syslog(const Syslog& syslog, const std::vector<std::string>& lines) {
  std::string where = syslog.address;
  if (where.empty()) where = syslog.host + ":" + (syslog.port.empty() ? "514" : syslog.port);
  std::string error;
  int file = connect_to(syslog, &error);
  if (file < 0) {
    return Status::error(
        fmt::format("syslog '{}': cannot reach {}: {}", syslog.name.value, where, error));
  }
  for (const std::string& line : lines) {
    std::string text = message(syslog, line);
    text += '\0';  // Python's SysLogHandler ends its messages with a NUL
    if (::send(file, text.data(), text.size(), MSG_NOSIGNAL) < 0) {
      error = std::strerror(errno);
      break;
    }
  }
  ::close(file);
  if (!error.empty()) {
    return Status::error(
        fmt::format("syslog '{}': cannot send to {}: {}", syslog.name.value, where, error));
  }
  return Status::ok();
}

}  // namespace tally
