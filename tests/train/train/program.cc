#include "tests/train/train/program.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <stdexcept>

namespace {

struct Pipe {
  Pipe() {
    if (pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error("pipe");
  }
  std::array<int, 2> ends{};
};

// Appends what can be read; false at the end.
bool take(int from, std::string* to) {
  std::array<char, 4096> buffer;
  const ssize_t n = read(from, buffer.data(), buffer.size());
  if (n <= 0) return false;
  to->append(buffer.data(), static_cast<size_t>(n));
  return true;
}

}  // namespace

Ended tally_train(const std::string& arguments, const std::string& shell_prefix,
                  const OnOutput& on_output, const std::string& launcher) {
  const std::string command =
      shell_prefix + " exec " + launcher + " " TALLY_BINARY_DIR "/bin/tally-train " + arguments;
  Pipe out, err;
  const pid_t pid = fork();
  if (pid < 0) throw std::runtime_error("fork");
  if (pid == 0) {
    dup2(out.ends[1], STDOUT_FILENO);
    dup2(err.ends[1], STDERR_FILENO);
    // Whatever the test was started from ignores.
    for (const int s : {SIGHUP, SIGINT, SIGPIPE}) signal(s, SIG_DFL);
    execl("/bin/sh", "sh", "-c", command.c_str(), static_cast<char*>(nullptr));
    _exit(127);
  }
  close(out.ends[1]);
  close(err.ends[1]);
  Ended ended;
  std::array<pollfd, 2> fds{{{out.ends[0], POLLIN, 0}, {err.ends[0], POLLIN, 0}}};
  while (fds[0].fd >= 0 || fds[1].fd >= 0) {
    if (poll(fds.data(), fds.size(), -1) < 0) continue;
    if (fds[0].revents != 0) {
      if (!take(fds[0].fd, &ended.out)) fds[0].fd = -1;
      if (on_output) on_output(ended.out, pid);
    }
    if (fds[1].revents != 0 && !take(fds[1].fd, &ended.err)) fds[1].fd = -1;
  }
  close(out.ends[0]);
  close(err.ends[0]);
  int status = 0;
  waitpid(pid, &status, 0);
  ended.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return ended;
}
