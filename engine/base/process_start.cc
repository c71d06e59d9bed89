#include "engine/base/process_start.h"

#include <unistd.h>

#include <array>
#include <fstream>
#include <sstream>

#include "engine/base/files.h"

namespace tally {

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
  std::string line;
  if (!read_file("/proc/" + std::to_string(pid) + "/stat", &line)) return Life::unknown;
  const size_t end = line.rfind(')');
  if (end == std::string::npos) return Life::unknown;
  std::istringstream fields(line.substr(end + 1));
  std::string field;
  bool zombie = false;
  for (int i = 3; i <= 22; ++i) {
    fields >> field;
    if (i == 3) zombie = field == "Z" || field == "X";
  }
  *ticks = field;
  return zombie ? Life::dead : Life::alive;
}

}  // namespace tally
