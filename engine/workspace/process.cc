#include "engine/workspace/process.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <map>
#include <set>

#include "engine/base/files.h"
#include "engine/base/presence.h"

namespace tally {
namespace {

// A signal handler can only reach global variables.
std::atomic<int> signal_pipe{-1};
std::atomic<int> stop_requests{0};
std::atomic<int> last_request{0};

void on_signal(int number) {
  const int reason = errno;
  if (number != SIGCHLD) {
    last_request = number;
    stop_requests.fetch_add(1);
  }
  const int fd = signal_pipe.load();
  if (fd >= 0) {
    const char byte = 1;
    [[maybe_unused]] const ssize_t put = write(fd, &byte, 1);
  }
  errno = reason;
}

// Installs the engine's signal handlers, and restores the former ones at its end. A request to stop
// that the engine has not seen by then is a signal to them: nobody has answered it.
class Signals {
 public:
  Signals() {
    if (pipe2(pipe_.data(), O_CLOEXEC | O_NONBLOCK) != 0) pipe_ = {-1, -1};
    signal_pipe = pipe_[1];
    stop_requests = 0;
    struct sigaction action {};
    action.sa_handler = on_signal;
    action.sa_flags = SA_RESTART;
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < handled.size(); ++i) {
      sigaction(handled[i], nullptr, &former_[i]);
      // An ignored signal stays ignored, so that nohup works.
      if (former_[i].sa_handler != SIG_IGN || handled[i] == SIGCHLD) {
        sigaction(handled[i], &action, nullptr);
      }
    }
  }
  ~Signals() {
    for (size_t i = 0; i < handled.size(); ++i) sigaction(handled[i], &former_[i], nullptr);
    signal_pipe = -1;
    for (const int fd : pipe_) {
      if (fd >= 0) close(fd);
    }
    if (stop_requests.load() != seen_) raise(last_request.load());
  }
  // How many requests to stop have come.
  int see_requests() const { return seen_ = stop_requests.load(); }
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  // Waits until a signal comes. `milliseconds` < 0: no limit.
  void wait(int milliseconds) {
    pollfd waiting{pipe_[0], POLLIN, 0};
    poll(&waiting, 1, milliseconds);
    std::array<char, 64> bytes{};
    while (read(pipe_[0], bytes.data(), bytes.size()) > 0) {
    }
  }

 private:
  static constexpr std::array<int, 4> handled{SIGCHLD, SIGINT, SIGTERM, SIGHUP};
  std::array<int, 2> pipe_{-1, -1};
  mutable int seen_ = 0;  // requests to stop
  std::array<struct sigaction, 4> former_{};
};

// The fields of /proc/PID/stat that are needed to find a process's descendants.
struct ProcessLine {
  int pid = 0, parent = 0, group = 0, session = 0;
};

std::vector<ProcessLine> all_processes() {
  std::vector<ProcessLine> lines;
  const auto add = [&lines](const dirent& entry) {
    const int pid = static_cast<int>(strtol(entry.d_name, nullptr, 10));
    if (pid <= 0) return;
    std::string text;
    if (!read_file("/proc/" + std::string(entry.d_name) + "/stat", &text)) return;
    const size_t end = text.rfind(')');
    ProcessLine line;
    line.pid = pid;
    char state = 0;
    if (end == std::string::npos || sscanf(text.c_str() + end + 1, " %c %d %d %d", &state,
                                           &line.parent, &line.group, &line.session) != 4) {
      return;
    }
    if (state != 'Z') lines.push_back(line);
  };
  [[maybe_unused]] const Status listed = each_entry("/proc", add);  // those that were found
  return lines;
}

class SpawnRunner final : public ProcessRunner {
 public:
  SpawnRunner() {
    prctl(PR_GET_CHILD_SUBREAPER, &former_reaper_);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
  }
  ~SpawnRunner() override { prctl(PR_SET_CHILD_SUBREAPER, former_reaper_); }

  Status start(const ProcessSpec& spec, int* pid) override;
  bool wait_any(std::chrono::milliseconds timeout, ProcessResult* result) override;
  void kill_tree(int pid, int signal) override;
  int interrupted() const override { return signals_.see_requests(); }
  bool by_person() const override { return last_request.load() == SIGINT; }

 private:
  struct Child {
    std::string directory;
  };
  bool reap(ProcessResult* result);
  void reap_left_behind();
  std::set<int> family(int pid) const;

  Signals signals_;
  int former_reaper_ = 0;
  int seen_requests_ = 0;
  std::map<int, Child> children_;
  std::set<int> left_behind_;  // process groups whose leader has ended but whose members may live
  // Processes that kill_tree() has signalled, by the process it was called for.
  std::map<int, std::set<int>> trees_;
  std::set<int> ended_;  // killed processes that are not direct children, until they are gone
};

// posix_spawn does not say which of its steps failed. This function checks what the start needs.
Status why_not_started(const ProcessSpec& spec, int reason) {
  struct stat info {};
  if (!spec.directory.empty()) {
    errno = 0;
    const bool there = stat(spec.directory.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
    if (!there && (errno == 0 || errno == ENOENT)) {
      // A command may have removed it. If the folder around it is away, too, a mount may be.
      const std::string around = spec.directory.substr(0, spec.directory.rfind('/'));
      const int reason_of_mount = stat(around.c_str(), &info) == 0 ? 0 : errno;
      return Status::error(spec.directory + ": the working directory is not there", reason_of_mount,
                           spec.directory);
    }
    if (!there || access(spec.directory.c_str(), X_OK) != 0) {
      return file_error(spec.directory, "cannot be used as the working directory", errno);
    }
  }
  for (const std::string* path : {&spec.stdout_path, &spec.stderr_path}) {
    if (path->empty()) continue;
    if (spec.own_outputs && lstat(path->c_str(), &info) == 0 && S_ISLNK(info.st_mode)) {
      return Status::error(*path + ": is a link, which the output would follow; remove it");
    }
    const int fd = open(path->c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0) {
      const Status error = file_error(*path, "cannot write", errno);
      // The user may have named a folder that is not there.
      return spec.own_outputs ? error : Status::error(error.message(), error.reason());
    }
    close(fd);
  }
  if (reason == E2BIG) {
    return Status::error("the command is too long for the operating system; put it into a script");
  }
  return Status::error(spec.argv.front() + ": cannot start: " + strerror(reason), reason);
}

Status SpawnRunner::start(const ProcessSpec& spec, int* pid) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  if (!spec.directory.empty()) {
    posix_spawn_file_actions_addchdir_np(&actions, spec.directory.c_str());
  }
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  const int flags = O_WRONLY | O_APPEND | O_CREAT | (spec.own_outputs ? O_NOFOLLOW : 0);
  if (!spec.stdout_path.empty()) {
    posix_spawn_file_actions_addopen(&actions, 1, spec.stdout_path.c_str(), flags, 0666);
  }
  if (spec.merge) {
    posix_spawn_file_actions_adddup2(&actions, 1, 2);
  } else if (!spec.stderr_path.empty()) {
    posix_spawn_file_actions_addopen(&actions, 2, spec.stderr_path.c_str(), flags, 0666);
  }
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  // Each child gets its own session. Ctrl-C then reaches only the engine, which ends its children
  // in order, and no child can stop when it reads from the terminal.
  posix_spawnattr_setflags(
      &attributes,
      static_cast<short>(POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF));
  std::vector<char*> argv, environment;
  for (const std::string& word : spec.argv) argv.push_back(const_cast<char*>(word.c_str()));
  for (const std::string& entry : spec.environment) {
    environment.push_back(const_cast<char*>(entry.c_str()));
  }
  argv.push_back(nullptr);
  environment.push_back(nullptr);
  pid_t child = 0;
  const int reason = spec.argv.front().find('/') != std::string::npos
                         ? posix_spawn(&child, argv.front(), &actions, &attributes, argv.data(),
                                       environment.data())
                         : posix_spawnp(&child, argv.front(), &actions, &attributes, argv.data(),
                                        environment.data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (reason != 0) return why_not_started(spec, reason);
  *pid = child;
  children_[child] = {spec.directory};
  return Status::ok();
}

bool SpawnRunner::reap(ProcessResult* result) {
  // Each child is waited for by its id, because other code may own other children of this process.
  for (auto child = children_.begin(); child != children_.end(); ++child) {
    int status = 0;
    const pid_t pid = waitpid(child->first, &status, WNOHANG);
    if (pid == 0 || (pid < 0 && errno != ECHILD)) continue;
    result->pid = child->first;
    result->signalled = pid > 0 && WIFSIGNALED(status);
    if (pid < 0) {
      result->status = 127;  // other code has reaped it; an unknown status is not a success
    } else {
      result->status = result->signalled ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    }
    left_behind_.insert(child->first);
    children_.erase(child);
    reap_left_behind();
    return true;
  }
  reap_left_behind();
  return false;
}

// Processes that an ended child left in its group are adopted by this process. Their exit statuses
// are reaped too.
void SpawnRunner::reap_left_behind() {
  for (auto group = left_behind_.begin(); group != left_behind_.end();) {
    pid_t taken = 0;
    while ((taken = waitpid(-*group, nullptr, WNOHANG)) > 0) {
    }
    group = taken < 0 && errno == ECHILD && kill(-*group, 0) != 0 ? left_behind_.erase(group)
                                                                  : std::next(group);
  }
  for (auto pid = ended_.begin(); pid != ended_.end();) {
    waitpid(*pid, nullptr, WNOHANG);
    pid = kill(*pid, 0) != 0 ? ended_.erase(pid) : std::next(pid);
  }
}

bool SpawnRunner::wait_any(std::chrono::milliseconds timeout, ProcessResult* result) {
  const auto end = std::chrono::steady_clock::now() + timeout;
  for (;;) {
    if (reap(result)) return true;
    // Each request ends one wait, even a request that came just before the wait.
    if (const int asked = stop_requests.load(); asked != seen_requests_) {
      seen_requests_ = asked;
      return false;
    }
    int milliseconds = -1;
    if (timeout.count() >= 0) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
          end - std::chrono::steady_clock::now());
      if (left.count() <= 0) return false;
      milliseconds = static_cast<int>(std::min<long long>(left.count() + 1, 1000000));
    }
    signals_.wait(milliseconds);
  }
}

// Returns the process, its session (background jobs and pipes stay in it) and all descendants. Also
// returns adopted processes that still run in its directory: daemons that left both their session
// and their parent.
std::set<int> SpawnRunner::family(int pid) const {
  const std::vector<ProcessLine> lines = all_processes();
  std::set<int> members;
  // If it has ended, its id may belong to another process.
  if (children_.count(pid) != 0) members.insert(pid);
  for (bool grown = true; grown;) {
    grown = false;
    for (const ProcessLine& line : lines) {
      if (members.count(line.pid) != 0) continue;
      if (line.session == pid || line.group == pid || members.count(line.parent) != 0) {
        members.insert(line.pid);
        grown = true;
      }
    }
  }
  const auto child = children_.find(pid);
  if (child == children_.end() || child->second.directory.empty()) return members;
  const std::string folder = absolute_path(child->second.directory);
  for (const ProcessLine& line : lines) {
    if (line.parent != getpid() || children_.count(line.pid) != 0) continue;
    std::array<char, 4096> where{};
    const std::string link = "/proc/" + std::to_string(line.pid) + "/cwd";
    const ssize_t size = readlink(link.c_str(), where.data(), where.size() - 1);
    const std::string directory(where.data(), size > 0 ? static_cast<size_t>(size) : 0);
    if (directory == folder || directory.rfind(folder + "/", 0) == 0) members.insert(line.pid);
  }
  return members;
}

void SpawnRunner::kill_tree(int pid, int signal) {
  std::set<int> members = family(pid);
  // A process that ignored the first signal may no longer be found as a descendant.
  std::set<int>& known = trees_[pid];
  members.insert(known.begin(), known.end());
  known = members;
  if (children_.count(pid) != 0) kill(-pid, signal);
  for (const int member : members) {
    if (member <= 1 || member == getpid()) continue;
    kill(member, signal);
    if (children_.count(member) == 0) ended_.insert(member);
  }
  if (signal == SIGKILL) trees_.erase(pid);
}

}  // namespace

std::unique_ptr<ProcessRunner> make_process_runner() {
  return std::make_unique<SpawnRunner>();
}

}  // namespace tally
