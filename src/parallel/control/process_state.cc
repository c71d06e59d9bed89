#include "src/parallel/control/process_state.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <fstream>
#include <iterator>

namespace tally::train {
namespace {

// The same for all processes that see each other's ids.
const std::string& host_prefix() {
  static const std::string text = [] {
    std::string boot;
    std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
    std::array<char, 64> space{};
    if (boot.empty() || readlink("/proc/self/ns/pid", space.data(), space.size() - 1) < 0)
      return std::string();
    return boot + " " + space.data() + " ";
  }();
  return text;
}

}  // namespace

std::string process_name() {
  return host_prefix().empty() ? "" : host_prefix() + std::to_string(getpid());
}

int local_process(const std::string& name) {
  if (host_prefix().empty() || name.rfind(host_prefix(), 0) != 0) return 0;
  return std::atoi(name.c_str() + host_prefix().size());
}

int64_t oom_kills() {
  std::string group;
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);)
    if (line.rfind("0::", 0) == 0) group = line.substr(3);
  // "oom_kill 3"
  for (const std::string& file :
       {"/sys/fs/cgroup" + group + "/memory.events", std::string("/proc/vmstat")}) {
    std::ifstream in(file);
    std::string name;
    for (int64_t count = 0; in >> name >> count;)
      if (name == "oom_kill") return count;
  }
  return 0;
}

bool is_stopped(int pid) {
  std::ifstream in(fmt::format("/proc/{}/stat", pid));
  const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  // "42 (name) T ...": the name may hold anything, parentheses too.
  const size_t at = text.rfind(')');
  if (at == std::string::npos || at + 2 >= text.size()) return false;
  return text[at + 2] == 'T' || text[at + 2] == 't';
}

}  // namespace tally::train
