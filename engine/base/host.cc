#include "engine/base/host.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <fstream>
#include <string_view>

namespace tally {

std::string host_identity() {
  if (const char* given = std::getenv("TALLY_HOST"); given != nullptr && *given != '\0') {
    return given;
  }
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "unknown";
  return name.data();
}

std::string name_beside(const std::string& path) {
  static std::atomic<unsigned> count{0};
  return path + ".new." + host_identity() + "." + std::to_string(getpid()) + "." +
         std::to_string(count++);
}

std::string boot_id() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  return boot;
}

std::string own_pid_namespace() {
  std::array<char, 64> name{};
  const ssize_t size = readlink("/proc/self/ns/pid", name.data(), name.size());
  return {name.data(), size > 0 ? static_cast<size_t>(size) : 0};
}

// Field 22 of /proc/PID/stat. The command's name, field 2, may contain spaces and parentheses.
Life read_start(int pid, std::string* ticks) {
  const std::string path = "/proc/" + std::to_string(pid) + "/stat";
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return Life::unknown;
  std::array<char, 1024> line;  // not zeroed: this is read once for each process that is started
  const ssize_t size = read(file, line.data(), line.size());
  close(file);
  const std::string_view text(line.data(), size > 0 ? static_cast<size_t>(size) : 0);
  size_t at = text.rfind(") ");
  if (at == std::string_view::npos) return Life::unknown;
  ++at;
  const bool zombie = text.substr(at + 1, 1) == "Z" || text.substr(at + 1, 1) == "X";
  for (int field = 3; field < 22 && at != std::string_view::npos; ++field) {
    at = text.find(' ', at + 1);
  }
  if (at == std::string_view::npos) return Life::unknown;
  *ticks = text.substr(at + 1, text.find(' ', at + 1) - at - 1);
  return zombie ? Life::dead : Life::alive;
}

}  // namespace tally
