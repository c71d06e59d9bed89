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

// Opens a socket to the log service, for send().
Status connect_to(const Syslog& syslog, int* file) {
  if (!syslog.address.empty()) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (syslog.address.size() >= sizeof address.sun_path)
      return Status::error("the socket's path is too long");
    std::memcpy(address.sun_path, syslog.address.data(), syslog.address.size());
    *file = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (*file >= 0 && ::connect(*file, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0)
      return Status::ok();
    const int reason = errno;
    if (*file >= 0) ::close(*file);
    return Status::error(std::strerror(reason), reason);
  }
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  std::string port = syslog.port.empty() ? "514" : syslog.port;
  const std::string host = host_to_resolve(syslog.host);
  int code = host.empty() ? EAI_NONAME : ::getaddrinfo(host.c_str(), port.c_str(), &hints, &found);
  if (code != 0) return Status::error(::gai_strerror(code));
  *file = -1;
  int reason = 0;
  for (addrinfo* a = found; a != nullptr && *file < 0; a = a->ai_next) {
    *file = ::socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC, a->ai_protocol);
    if (*file >= 0 && ::connect(*file, a->ai_addr, a->ai_addrlen) == 0) continue;
    reason = errno;
    if (*file >= 0) ::close(*file);
    *file = -1;
  }
  ::freeaddrinfo(found);
  return *file < 0 ? Status::error(std::strerror(reason), reason) : Status::ok();
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
      if (std::string formatted;
          !key.format.empty() && !value.none() && format_cell(value, key.format, exact, &formatted))
        text = std::move(formatted);
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
  int file = -1;
  if (const Status connected = connect_to(syslog, &file); !connected) {
    return Status::error(fmt::format("syslog '{}': cannot reach {}: {}", syslog.name.value, where,
                                     connected.message()));
  }
  std::string error;
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
