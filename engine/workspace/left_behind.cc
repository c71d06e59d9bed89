#include "engine/workspace/left_behind.h"

#include <dirent.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "engine/base/digest.h"
#include "engine/base/files.h"
#include "engine/base/host.h"
#include "engine/base/presence.h"

namespace tally {
namespace {

using FileNumber = std::pair<dev_t, ino_t>;

// The signs by which processes of a run are found.
struct RunTraces {
  std::set<std::string> marks;
  std::map<int, std::string> sessions;  // by the leader's id
  struct Output {
    std::string path;
    bool reported = true;  // who else has it open
  };
  std::map<FileNumber, Output> outputs;
  std::set<int> callers;  // this process and its ancestors
  std::string boot;
  int session = 0;
};

struct Family {
  int parent = 0, session = 0;
};
using Families = std::map<int, Family>;

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

Status all_families(Families* families) {
  families->clear();
  return each_entry("/proc", [families](const dirent& entry) {
    const int pid = static_cast<int>(strtol(entry.d_name, nullptr, 10));
    Family family;
    if (pid > 1 && read_family(pid, &family)) families->emplace(pid, family);
  });
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

// The output file that is the process's standard output or error. Null: none.
const RunTraces::Output* held_output(int pid, const RunTraces& traces) {
  for (const char* stream : {"1", "2"}) {
    struct stat info {};
    const std::string link = "/proc/" + std::to_string(pid) + "/fd/" + stream;
    if (stat(link.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) continue;
    const auto found = traces.outputs.find({info.st_dev, info.st_ino});
    if (found != traces.outputs.end()) return &found->second;
  }
  return nullptr;
}

// Whether the process is in a session that an operation began. The kernel does not use an id again
// while it names a session. When the leader has ended, the session may have ended with it and the
// id may name a later one, so that the open output must show whose process it is.
bool in_own_session(int pid, const Family& family, const Families& all, const RunTraces& traces) {
  const auto session = traces.sessions.find(family.session);
  if (session == traces.sessions.end()) return false;
  if (all.count(family.session) != 0) {
    return start_mark(traces.boot, family.session) == session->second;
  }
  return held_output(pid, traces) != nullptr;
}

// Jobs of a scheduler may run on this host.
bool in_other_job(const std::string& environment) {
  const char* job = value_in(environment, "SLURM_JOB_ID");
  const char* own = getenv("SLURM_JOB_ID");
  return job != nullptr && std::string_view(job) != (own != nullptr ? own : "");
}

bool is_left_behind(int pid, const Family& family, const Families& all, const RunTraces& traces) {
  std::string environment;
  const bool known(read_file("/proc/" + std::to_string(pid) + "/environ", &environment));
  if (!known || in_other_job(environment)) return false;
  const char* mark = value_in(environment, process_mark);
  return (mark != nullptr && traces.marks.count(mark) != 0) ||
         in_own_session(pid, family, all, traces);
}

// The processes that the operations left, and their descendants.
std::set<int> left_behind(const Families& all, const RunTraces& traces) {
  std::set<int> pids;
  for (const auto& [pid, family] : all) {
    if (traces.callers.count(pid) == 0 && is_left_behind(pid, family, all, traces)) {
      pids.insert(pid);
    }
  }
  for (bool grown = true; grown;) {
    grown = false;
    for (const auto& [pid, family] : all) {
      if (pids.count(family.parent) != 0 && traces.callers.count(pid) == 0) {
        grown = pids.insert(pid).second || grown;
      }
    }
  }
  return pids;
}

// `any`: whether there is a holder, reported or not.
std::vector<Foreign> holders_of_outputs(const Families& all, const RunTraces& traces, bool* any) {
  *any = false;
  std::vector<Foreign> holders;
  for (const auto& [pid, family] : all) {
    if (traces.callers.count(pid) != 0 || family.session == traces.session) continue;
    const RunTraces::Output* file = held_output(pid, traces);
    if (file == nullptr) continue;
    *any = true;
    if (!file->reported) continue;
    std::string command;
    if (!read_file("/proc/" + std::to_string(pid) + "/comm", &command)) command.clear();
    holders.push_back({pid, command.substr(0, command.find('\n')), file->path});
  }
  return holders;
}

RunTraces traces_of(const std::vector<Unfinished>& workpackages) {
  RunTraces traces;
  traces.boot = boot_mark();
  for (const Unfinished& workpackage : workpackages) {
    traces.marks.insert(workpackage.mark);
    for (const Unfinished::Session& session : workpackage.sessions) {
      // Ids of another boot or namespace say nothing here. The latest session of an id counts.
      if (session.start.rfind(traces.boot + "/", 0) == 0) {
        traces.sessions[session.pid] = session.start;
      }
    }
    for (const bool reported : {true, false}) {
      for (const std::string& output : reported ? workpackage.outputs : workpackage.outside) {
        struct stat info {};
        if (stat(output.c_str(), &info) == 0 && S_ISREG(info.st_mode))
          traces.outputs.emplace(FileNumber{info.st_dev, info.st_ino},
                                 RunTraces::Output{output, reported});
      }
    }
  }
  traces.session = getsid(0);
  Family family;
  for (int pid = getpid(); pid > 1; pid = family.parent) {
    traces.callers.insert(pid);
    if (!read_family(pid, &family)) break;
  }
  return traces;
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
  const std::string prefix = run + ":";
  if (mark == nullptr || std::string_view(mark).substr(0, prefix.size()) != prefix) return {};
  return static_cast<int>(strtol(mark + prefix.size(), nullptr, 10));
}

std::optional<bool> is_descendant(int pid, int ancestor) {
  Family family;
  for (; pid > 1; pid = family.parent) {
    if (pid == ancestor) return true;
    if (!read_family(pid, &family)) return {};
  }
  return false;
}

std::string boot_mark() {
  return digest_of(boot_id() + " " + own_pid_namespace()).substr(0, 16);
}

std::string start_mark(const std::string& boot, int pid) {
  std::string ticks;
  return read_start(pid, &ticks) == Life::unknown ? std::string() : boot + "/" + ticks;
}

Status end_left_behind(const std::vector<Unfinished>& workpackages, std::vector<Foreign>* foreign) {
  const RunTraces traces = traces_of(workpackages);
  Families all;
  std::set<int> pids;
  // For a moment at its start and at its end a process has no environment that tells whose it is.
  constexpr int looks = 3;
  for (int attempt = 0, seen = 0; attempt < 100; ++attempt) {
    TRY(all_families(&all));
    pids = left_behind(all, traces);
    if (pids.empty()) {
      bool any = false;
      *foreign = holders_of_outputs(all, traces, &any);
      if (!any || ++seen == looks) return Status::ok();
    }
    for (const int pid : pids) kill(pid, attempt < 20 ? SIGTERM : SIGKILL);
    usleep(50000);
  }
  if (pids.empty()) return Status::ok();
  return Status::error("process " + std::to_string(*pids.begin()) +
                       ", which an earlier attempt left, cannot be ended; end it, then continue");
}

}  // namespace tally
