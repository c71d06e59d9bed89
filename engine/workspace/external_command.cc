#include "engine/workspace/external_command.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "engine/base/text.h"

namespace tally {
namespace {

using Clock = std::chrono::steady_clock;

// Reads the available data from a pipe. Returns false at its end.
bool drain(int fd, std::string& text) {
  std::array<char, 4096> buffer{};
  const ssize_t got = read(fd, buffer.data(), buffer.size());
  if (got > 0) text.append(buffer.data(), static_cast<size_t>(got));
  return got > 0 || (got < 0 && errno == EINTR);
}

std::vector<char*> pointers(const std::vector<std::string>& words) {
  std::vector<char*> list;
  for (const std::string& word : words) list.push_back(const_cast<char*>(word.c_str()));
  list.push_back(nullptr);
  return list;
}

int spawn(const ExternalCommand& spec, int out, int err, pid_t* pid) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  if (!spec.directory.empty()) {
    posix_spawn_file_actions_addchdir_np(&actions, spec.directory.c_str());
  }
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out, 1);
  posix_spawn_file_actions_adddup2(&actions, err, 2);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
  const std::vector<char*> argv = pointers(spec.words);
  const std::vector<char*> environment = pointers(spec.environment);
  const int failed =
      posix_spawnp(pid, argv.front(), &actions, &attributes, argv.data(), environment.data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  return failed;
}

// Reads both pipes to their ends. Returns false when the command was ended before that.
bool listen(const ExternalCommand& spec, pid_t pid, int out, int err, CommandResult* result) {
  const auto end = Clock::now() + spec.patience;
  std::array<pollfd, 2> waiting{{{out, POLLIN, 0}, {err, POLLIN, 0}}};
  while (waiting[0].fd >= 0 || waiting[1].fd >= 0) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now());
    const bool given_up = spec.given_up != nullptr && spec.given_up->load();
    if (left.count() <= 0 || given_up) {
      kill(-pid, SIGKILL);
      result->err += given_up ? spec.words.front() + ": given up"
                              : spec.words.front() + ": no answer within " +
                                    std::to_string(spec.patience.count() / 1000) + " s";
      return false;
    }
    const auto step = spec.given_up != nullptr ? std::min<long long>(left.count(), 100)
                                               : static_cast<long long>(left.count());
    if (poll(waiting.data(), waiting.size(), static_cast<int>(step)) <= 0) continue;
    if (waiting[0].revents != 0 && !drain(out, result->out)) waiting[0].fd = -1;
    if (waiting[1].revents != 0 && !drain(err, result->err)) waiting[1].fd = -1;
  }
  return true;
}

}  // namespace

CommandResult run_external(const ExternalCommand& spec) {
  CommandResult result;
  std::array<int, 2> out{}, err{};
  if (pipe2(out.data(), O_CLOEXEC) != 0 || pipe2(err.data(), O_CLOEXEC) != 0) {
    result.err = spec.words.front() + ": " + strerror(errno);
    if (out[0] > 0) {
      close(out[0]);
      close(out[1]);
    }
    return result;
  }
  pid_t pid = 0;
  const int failed = spawn(spec, out[1], err[1], &pid);
  close(out[1]);
  close(err[1]);
  if (failed != 0) {
    result.err = spec.words.front() + ": " + strerror(failed);
  } else {
    result.started = true;
    const bool heard = listen(spec, pid, out[0], err[0], &result);
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (heard && WIFEXITED(status)) result.status = WEXITSTATUS(status);
    if (heard && WIFSIGNALED(status)) result.signal = WTERMSIG(status);
  }
  close(out[0]);
  close(err[0]);
  return result;
}

std::string error_text(const CommandResult& result, const std::string& command) {
  std::string text(strip(result.err.empty() ? result.out : result.err));
  if (result.signal != 0) {
    return command + ": ended by signal " + std::to_string(result.signal) +
           (text.empty() ? text : ": " + text);
  }
  if (text.rfind(command + ": ", 0) == 0) return text;
  return command + ": " + (text.empty() ? "failed without a word" : text);
}

}  // namespace tally
