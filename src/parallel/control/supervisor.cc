#include "src/parallel/control/supervisor.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <optional>
#include <vector>

#include "src/data/text/exit_codes.h"
#include "src/parallel/control/process_state.h"
#include "src/parallel/control/rendezvous_wire.h"
#include "src/parallel/control/tcp.h"

namespace tally::train {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto grace = std::chrono::seconds(3);
// If a library has started threads, one of them may receive the signal of a rank's end (SIGCHLD).
// Then polling finds the end.
constexpr int look_every_milliseconds = 500;
constexpr int exit_not_started = 127;  // a shell's code for a program that it cannot start

// False when it cannot be written: the disk is full, or the reader has closed the pipe.
bool write_whole(int fd, const std::string& text) {
  for (size_t at = 0; at < text.size();) {
    const ssize_t n = write(fd, text.data() + at, text.size() - at);
    if (n < 0 && errno != EINTR) return false;
    if (n > 0) at += static_cast<size_t>(n);
  }
  return true;
}

// Copies the output of a rank line by line, with its number in front.
class PrefixedLines {
 public:
  PrefixedLines(int rank, int to) : prefix_(fmt::format("[rank{}]: ", rank)), to_(to) {
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0)
      throw LaunchError(fmt::format("a pipe cannot be made: {}", std::strerror(errno)));
    from_ = Socket(ends[0]);
    into_ = Socket(ends[1]);
    fcntl(from_.fd(), F_SETFL, O_NONBLOCK);
  }
  int into() const { return into_.fd(); }
  int from() const { return from_.fd(); }
  void close_into() { into_ = Socket(); }
  // Reads what is available; at the end the pipe is closed and from() is -1.
  void take() {
    std::array<char, 1 << 16> buffer;
    for (;;) {
      const ssize_t n = from_.open() ? read(from_.fd(), buffer.data(), buffer.size()) : -1;
      if (n < 0) return;
      if (n == 0) {
        finish();
        from_ = Socket();
        return;
      }
      line_.append(buffer.data(), static_cast<size_t>(n));
      std::string out;
      size_t begin = 0;
      for (size_t end; (end = line_.find('\n', begin)) != std::string::npos; begin = end + 1)
        out += prefix_ + line_.substr(begin, end + 1 - begin);
      line_.erase(0, begin);
      // The rank notices a lost line of standard output at its next one, as it would without us,
      // and stops. It goes on without messages on standard error.
      if (!put(out) && to_ == STDOUT_FILENO) from_ = Socket();
    }
  }
  void finish() {
    if (!line_.empty()) put(prefix_ + line_ + "\n");
    line_.clear();
  }
  // The reason why a line of standard output was lost; empty where none was.
  std::string failure() const {
    if (lost_ == 0 || to_ != STDOUT_FILENO) return "";
    return fmt::format("standard output cannot be written: {}", std::strerror(lost_));
  }

 private:
  bool put(const std::string& text) {
    if (write_whole(to_, text)) return true;
    lost_ = errno;
    return false;
  }

  std::string prefix_, line_;
  int to_, lost_ = 0;  // lost_: an errno
  Socket from_, into_;
};

struct Rank {
  int rank = 0;
  pid_t pid = -1;                     // -1: has ended
  std::vector<PrefixedLines> output;  // stdout, stderr; none: inherited
  // Messages to the rank: failures of others, which only this process can know (rendezvous.h).
  // Messages from it: one byte when the first failure has been reported.
  Socket news;
};

class Supervisor {
 public:
  Supervisor(int processes, const LaunchOptions& options, const Launch& outer)
      : processes_(processes), stop_seconds_(options.stop_seconds()), outer_(outer) {
    block_signals();
    run_ = outer.size > 1
               ? outer.run
               : fmt::format("process {} {}", getpid(), Clock::now().time_since_epoch().count());
    address_ = outer.address;
    port_ = outer.port;
    token_ = outer.token.text;
    if (outer.size == 1) {
      address_ = "127.0.0.1";
      listener_ = listen_on(address_, options.port);
      port_ = port_of(listener_);
      token_ = new_token();
    }
    for (int i = 0; i < processes; ++i) {
      Rank& r = ranks_.emplace_back();
      r.rank = outer.rank * processes + i;
      if (!options.prefix) continue;
      r.output.emplace_back(r.rank, STDOUT_FILENO);
      r.output.emplace_back(r.rank, STDERR_FILENO);
    }
  }

  int run(char** argv) {
    for (int i = 0; i < processes_; ++i) start(i, argv);
    listener_ = Socket();
    while (running()) {
      oom_kills_ = oom_kills();
      wait();
      reap();
      if (failure_) kill_stopped();
      if (kill_at_ && Clock::now() >= *kill_at_) kill_all();
    }
    for (Rank& r : ranks_) {
      for (PrefixedLines& lines : r.output) {
        lines.take();
        lines.finish();
      }
    }
    if (failure_ && !cause_.empty() && !was_reported())
      write_whole(STDERR_FILENO, "tally-train: error: " + cause_ + "\n");
    if (!failure_ && !stopped_) report_lost_lines();
    return failure_.value_or(stopped_ ? exit_stopped : exit_completed);
  }

 private:
  void block_signals();
  std::vector<std::string> environment_of(int index, int news) const;
  void start(int index, char** argv);
  void wait();
  void reap();
  void note_end(const Rank& rank, pid_t pid, int status);
  void report_lost_lines();
  bool running() const {
    return std::any_of(ranks_.begin(), ranks_.end(), [](const Rank& r) { return r.pid > 0; });
  }
  void send_all(int signal) const {
    for (const Rank& r : ranks_)
      if (r.pid > 0) kill(r.pid, signal);
  }
  void ask_to_stop(int signal);
  void blame_stopped();
  void kill_stopped();
  void kill_all();
  void tell_others(const Failure& failure) const;
  bool was_reported() const;

  const int processes_;
  const double stop_seconds_;
  const Launch outer_;
  std::string run_, address_, token_;
  int port_ = 0;
  Socket listener_, signals_;
  sigset_t previous_{};
  std::vector<Rank> ranks_;
  std::optional<int> failure_;
  std::string cause_;  // why a rank was killed; the ranks report it if they can
  int64_t oom_kills_ = 0;
  bool stopped_ = false;
  int asked_to_stop_ = 0;  // the first signal that was passed on; 0: none
  // The time at which the ranks that are left are killed.
  std::optional<Clock::time_point> kill_at_;
};

void Supervisor::block_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int s : {SIGCHLD, SIGTERM, SIGINT, SIGUSR1, SIGUSR2, SIGHUP}) sigaddset(&set, s);
  sigprocmask(SIG_BLOCK, &set, &previous_);
  signals_ = Socket(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
}

std::vector<std::string> Supervisor::environment_of(int index, int news) const {
  const bool alone = processes_ == 1;  // started only to prefix its output: its rank is our own
  std::vector<std::string> all;
  const std::vector<std::string> ours{
      fmt::format("TALLY_SUPERVISED={}", run_),
      fmt::format("RANK={}", outer_.rank * processes_ + index),
      fmt::format("WORLD_SIZE={}", outer_.size * processes_),
      fmt::format("LOCAL_RANK={}", alone ? outer_.local_rank : index),
      fmt::format("LOCAL_WORLD_SIZE={}", alone ? outer_.local_size : processes_),
      fmt::format("MASTER_ADDR={}", address_),
      fmt::format("MASTER_PORT={}", port_),
      fmt::format("TALLY_SUPERVISOR_FD={}", news),
      fmt::format("{}={}", token_variable, token_),
      fmt::format("TALLY_RENDEZVOUS_FD={}",
                  index == 0 && listener_.open() ? std::to_string(listener_.fd()) : "")};
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const std::string name = text.substr(0, text.find('=') + 1);
    if (std::none_of(ours.begin(), ours.end(),
                     [&](const std::string& o) { return o.rfind(name, 0) == 0; }))
      all.push_back(text);
  }
  all.insert(all.end(), ours.begin(), ours.end());
  return all;
}

void Supervisor::start(int index, char** argv) {
  Rank& rank = ranks_[static_cast<size_t>(index)];
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0)
    throw LaunchError(fmt::format("a pair of sockets cannot be made: {}", std::strerror(errno)));
  rank.news = Socket(ends[0]);
  const Socket its_end(ends[1]);
  std::vector<std::string> environment = environment_of(index, its_end.fd());
  std::vector<char*> pointers;
  for (std::string& entry : environment) pointers.push_back(entry.data());
  pointers.push_back(nullptr);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) throw LaunchError(fmt::format("fork: {}", std::strerror(errno)));
  if (pid == 0) {
    // Only async-signal-safe calls are allowed between fork and exec. A terminal's ctrl-C reaches
    // this process, which passes it on once.
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(exit_error);
    sigprocmask(SIG_SETMASK, &previous_, nullptr);
    if (!rank.output.empty()) {
      dup2(rank.output[0].into(), STDOUT_FILENO);
      dup2(rank.output[1].into(), STDERR_FILENO);
    }
    if (index == 0 && listener_.open()) fcntl(listener_.fd(), F_SETFD, 0);
    fcntl(its_end.fd(), F_SETFD, 0);
    execve("/proc/self/exe", argv, pointers.data());
    _exit(exit_not_started);
  }
  rank.pid = pid;
  for (PrefixedLines& lines : rank.output) lines.close_into();
}

// Waits for output, a signal, the end of a rank, or the end of the grace period.
void Supervisor::wait() {
  std::vector<pollfd> fds{{signals_.fd(), POLLIN, 0}};
  for (const Rank& r : ranks_)
    for (const PrefixedLines& lines : r.output) fds.push_back({lines.from(), POLLIN, 0});
  if (poll(fds.data(), fds.size(), look_every_milliseconds) < 0) return;
  for (Rank& r : ranks_)
    for (PrefixedLines& lines : r.output) lines.take();
  signalfd_siginfo info{};
  while (read(signals_.fd(), &info, sizeof info) == sizeof info)
    if (info.ssi_signo != SIGCHLD) ask_to_stop(static_cast<int>(info.ssi_signo));
}

// A stopped rank (SIGSTOP) handles no signal before it is continued.
void Supervisor::ask_to_stop(int signal) {
  send_all(signal);
  send_all(SIGCONT);
  if (asked_to_stop_ != 0 || failure_) return;
  asked_to_stop_ = signal;
  kill_at_ = in_seconds(stop_seconds_);
}

// The cause of a failure that no rank has reported.
void Supervisor::blame_stopped() {
  for (const Rank& r : ranks_)
    if (cause_.empty() && r.pid > 0 && is_stopped(r.pid))
      cause_ = fmt::format("rank {}: process {} was stopped (SIGSTOP, a debugger)", r.rank, r.pid);
}

// Stopped ranks cannot notice that the run has failed. The others do, and end. Before that they
// would take a stopped rank whose connection is closed for one that was killed.
void Supervisor::kill_stopped() {
  const auto runs = [](const Rank& r) { return r.pid > 0 && !is_stopped(r.pid); };
  if (std::any_of(ranks_.begin(), ranks_.end(), runs)) return;
  blame_stopped();
  send_all(SIGKILL);
}

void Supervisor::tell_others(const Failure& failure) const {
  const std::string packet = encode(failure);
  for (const Rank& r : ranks_)
    if (r.pid > 0) send(r.news.fd(), packet.data(), packet.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
}

bool Supervisor::was_reported() const {
  return std::any_of(ranks_.begin(), ranks_.end(), [](const Rank& r) {
    char byte = 0;
    return recv(r.news.fd(), &byte, 1, MSG_DONTWAIT) == 1;
  });
}

// The grace period after a failure or a request to stop is over. After a failure, its cause is
// reported, and not what follows from it.
void Supervisor::kill_all() {
  std::vector<int> left;
  for (const Rank& r : ranks_)
    if (r.pid > 0) left.push_back(r.rank);
  if (failure_) blame_stopped();
  send_all(SIGKILL);
  kill_at_.reset();
  if (failure_) return;
  failure_ = exit_error;
  const std::string since = fmt::format("{:.0f} s of the request to stop (signal {}, {})",
                                        stop_seconds_, asked_to_stop_, strsignal(asked_to_stop_));
  const bool one = left.size() == 1;
  write_whole(STDERR_FILENO,
              fmt::format("tally-train: error: rank{} {} did not end within {} and {} killed\n",
                          one ? "" : "s", fmt::join(left, ", "), since, one ? "was" : "were"));
}

void Supervisor::reap() {
  for (Rank& r : ranks_) {
    int status = 0;
    if (r.pid <= 0 || waitpid(r.pid, &status, WNOHANG) != r.pid) continue;
    const pid_t pid = std::exchange(r.pid, -1);
    note_end(r, pid, status);
  }
}

void Supervisor::note_end(const Rank& rank, pid_t pid, int status) {
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : exit_error;
  if (WIFEXITED(status) && code == exit_completed) return;
  if (WIFEXITED(status) && code == exit_stopped) {
    stopped_ = true;
    return;
  }
  if (failure_) return;  // consequences of the first failure
  failure_ = code;
  kill_at_ = Clock::now() + grace;
  if (WIFSIGNALED(status)) {
    Failure f;
    f.rank = rank.rank;
    f.message = fmt::format("process {} was killed by signal {} ({})", pid, WTERMSIG(status),
                            strsignal(WTERMSIG(status)));
    if (WTERMSIG(status) == SIGKILL && oom_kills() > oom_kills_) {
      f.code = exit_out_of_memory;
      f.message +=
          ", because the host or its control group had no memory left: take a smaller "
          "--micro-batch-size, or more hosts; tally-train --plan says what a run needs";
    }
    failure_ = f.code;
    cause_ = fmt::format("rank {}: {}", f.rank, f.message);
    tell_others(f);
  }
  if (code == exit_not_started)
    write_whole(STDERR_FILENO, "tally-train: error: the program could not start itself again\n");
}

// Ranks that ended in order have not noticed that their last lines were lost.
void Supervisor::report_lost_lines() {
  for (const Rank& r : ranks_) {
    for (const PrefixedLines& lines : r.output) {
      if (lines.failure().empty()) continue;
      failure_ = exit_error;
      write_whole(STDERR_FILENO,
                  fmt::format("tally-train: error: the output of rank {} is incomplete: {}\n",
                              r.rank, lines.failure()));
    }
  }
}

}  // namespace

int supervise(int processes, const LaunchOptions& options, const Launch& outer, char** argv) {
  return Supervisor(processes, options, outer).run(argv);
}

}  // namespace tally::train
