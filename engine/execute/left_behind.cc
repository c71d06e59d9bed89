#include "engine/execute/left_behind.h"

#include <dirent.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <string_view>
#include <utility>

#include "engine/execute/files/run_directory.h"

namespace tally {
namespace {

using FileNumber = std::pair<dev_t, ino_t>;

struct Wanted {
  std::set<std::string> marks;
  std::set<FileNumber> outputs;
  std::set<int> callers;  // this process and its ancestors
  int session = 0;
};

struct Family {
  int parent = 0, session = 0;
};

// Reads the ids of a live process.
bool read_family(int pid, Family* family) {
  std::string text;
  if (!read_file("/proc/" + std::to_string(pid) + "/stat", &text)) return false;
  const size_t end = text.rfind(')');
  char state = 0;
  int group = 0;
  return end != std::string::npos &&
         sscanf(text.c_str() + end + 1, " %c %d %d %d", &state, &family->parent, &group,
                &family->session) == 4 &&
         state != 'Z';
}

// The value of a variable in /proc/PID/environ. Null when it is not set.
const char* value_in(const std::string& environment, std::string_view name) {
  for (size_t at = 0; at < environment.size(); at = environment.find('\0', at) + 1) {
    const std::string_view entry(environment.c_str() + at);
    if (entry.size() > name.size() && entry.substr(0, name.size()) == name &&
        entry[name.size()] == '=') {
      return environment.c_str() + at + name.size() + 1;
    }
    if (environment.find('\0', at) == std::string::npos) break;
  }
  return nullptr;
}

bool holds_output(int pid, const Wanted& wanted) {
  for (const char* stream : {"1", "2"}) {
    struct stat info {};
    const std::string link = "/proc/" + std::to_string(pid) + "/fd/" + stream;
    if (stat(link.c_str(), &info) == 0 && S_ISREG(info.st_mode) &&
        wanted.outputs.count({info.st_dev, info.st_ino}) != 0) {
      return true;
    }
  }
  return false;
}

bool is_left_behind(int pid, const Wanted& wanted) {
  Family family;
  if (wanted.callers.count(pid) != 0 || !read_family(pid, &family)) return false;
  std::string environment;
  if (!read_file("/proc/" + std::to_string(pid) + "/environ", &environment)) return false;
  const char* mark = value_in(environment, process_mark);
  const bool marked = mark != nullptr && wanted.marks.count(mark) != 0;
  if (!marked && (family.session == wanted.session || !holds_output(pid, wanted))) return false;
  // Jobs of a scheduler may run on this host.
  const char* job = value_in(environment, "SLURM_JOB_ID");
  const char* own = getenv("SLURM_JOB_ID");
  return job == nullptr || std::string_view(job) == (own != nullptr ? own : "");
}

std::vector<int> left_behind(const Wanted& wanted) {
  std::vector<int> pids;
  DIR* list = opendir("/proc");
  if (list == nullptr) return pids;
  while (const dirent* entry = readdir(list)) {
    const int pid = static_cast<int>(strtol(entry->d_name, nullptr, 10));
    if (pid > 1 && is_left_behind(pid, wanted)) pids.push_back(pid);
  }
  closedir(list);
  return pids;
}

}  // namespace

std::string run_mark(const std::string& run_dir, const std::string& start) {
  struct stat info {};
  stat(run_dir.c_str(), &info);
  return std::to_string(info.st_dev) + "." + std::to_string(info.st_ino) + "." + start;
}

std::string workpackage_mark(const std::string& run, int workpackage) {
  return run + ":" + std::to_string(workpackage);
}

std::optional<int> workpackage_of(int pid, const std::string& run) {
  std::string environment;
  if (!read_file("/proc/" + std::to_string(pid) + "/environ", &environment)) return {};
  const char* mark = value_in(environment, process_mark);
  const std::string wanted = run + ":";
  if (mark == nullptr || std::string_view(mark).substr(0, wanted.size()) != wanted) return {};
  return static_cast<int>(strtol(mark + wanted.size(), nullptr, 10));
}

bool is_descendant(int pid, int ancestor) {
  Family family;
  for (; pid > 1; pid = family.parent) {
    if (pid == ancestor) return true;
    if (!read_family(pid, &family)) return false;
  }
  return false;
}

void end_left_behind(const std::vector<Unfinished>& workpackages) {
  Wanted wanted;
  for (const Unfinished& workpackage : workpackages) {
    wanted.marks.insert(workpackage.mark);
    for (const std::string& output : workpackage.outputs) {
      struct stat info {};
      if (stat(output.c_str(), &info) == 0 && S_ISREG(info.st_mode)) {
        wanted.outputs.insert({info.st_dev, info.st_ino});
      }
    }
  }
  wanted.session = getsid(0);
  Family family;
  for (int pid = getpid(); pid > 1; pid = family.parent) {
    wanted.callers.insert(pid);
    if (!read_family(pid, &family)) break;
  }
  for (int attempt = 0; attempt < 100; ++attempt) {
    const std::vector<int> pids = left_behind(wanted);
    if (pids.empty()) return;
    for (const int pid : pids) kill(pid, attempt < 20 ? SIGTERM : SIGKILL);
    usleep(50000);
  }
}

}  // namespace tally
