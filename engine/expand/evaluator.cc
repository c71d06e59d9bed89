#include "engine/expand/evaluator.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <system_error>

#include "engine/base/files.h"
#include "engine/base/text.h"
#include "engine/expand/python_helper.h"
#include "engine/python/value.h"

namespace tally {
namespace {

// A file descriptor that closes itself.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Fd() { reset(); }
  void reset() {
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
  }
  int get() const { return fd_; }

 private:
  int fd_ = -1;
};

struct Pipe {
  Fd read, write;
};

bool make_pipe(Pipe* out) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return false;
  out->read = Fd(ends[0]);
  out->write = Fd(ends[1]);
  return true;
}

int wait_for(pid_t pid) {
  int status = 0;
  while (waitpid(pid, &status, 0) < 0) {
    if (errno != EINTR) return -1;
  }
  return status;
}

struct Streams {
  int in = -1, out = -1, err = -1;
};

// Starts argv in `directory` with its standard streams connected to the given descriptors. A
// descriptor of -1 or an empty `directory` means the engine's own. `path` ("PATH=...") replaces the
// engine's PATH unless it is empty. Returns 0, or an errno value when the process did not start.
int spawn(const std::vector<std::string>& argv, const std::string& directory,
          const Streams& streams, pid_t* pid, const std::string& path = {}) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  if (streams.in >= 0) posix_spawn_file_actions_adddup2(&actions, streams.in, 0);
  if (streams.out >= 0) posix_spawn_file_actions_adddup2(&actions, streams.out, 1);
  if (streams.err >= 0) posix_spawn_file_actions_adddup2(&actions, streams.err, 2);
  if (!directory.empty()) posix_spawn_file_actions_addchdir_np(&actions, directory.c_str());
  // The engine may block or ignore signals. Its children must not inherit that.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none, defaults;
  sigemptyset(&none);
  sigemptyset(&defaults);
  sigaddset(&defaults, SIGPIPE);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  std::vector<char*> pointers;
  pointers.reserve(argv.size() + 1);
  for (const std::string& word : argv) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  std::vector<char*> variables;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    if (path.empty() || strncmp(*variable, "PATH=", 5) != 0) variables.push_back(*variable);
  }
  if (!path.empty()) variables.push_back(const_cast<char*>(path.c_str()));
  variables.push_back(nullptr);
  const int failed =
      posix_spawnp(pid, pointers[0], &actions, &attributes, pointers.data(), variables.data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return failed;
}

// Blocks SIGPIPE for this thread while the object lives, and discards a SIGPIPE raised meanwhile.
// Writing to a helper that has died must give an error and not end the engine.
class NoSigpipe {
 public:
  NoSigpipe() {
    sigemptyset(&set_);
    sigaddset(&set_, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &set_, &before_);
  }
  ~NoSigpipe() {
    const timespec now{0, 0};
    while (sigtimedwait(&set_, nullptr, &now) > 0) {
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  NoSigpipe(const NoSigpipe&) = delete;
  NoSigpipe& operator=(const NoSigpipe&) = delete;

 private:
  sigset_t set_, before_;
};

// Reads the available bytes, at most 64 KiB. Returns false at the end of the stream or on an error.
bool read_some(int fd, std::string* out) {
  char buffer[65536];
  ssize_t n;
  do {
    n = read(fd, buffer, sizeof buffer);
  } while (n < 0 && errno == EINTR);
  if (n <= 0) return false;
  out->append(buffer, static_cast<size_t>(n));
  return true;
}

std::string last_line(std::string_view text) {
  text = strip(text);
  const size_t newline = text.rfind('\n');
  if (newline != std::string_view::npos) text.remove_prefix(newline + 1);
  return std::string(text);
}

// Joins all lines. Perl's last line alone says only that it gave up.
std::string in_one_line(std::string_view text) {
  return join(split_strip(strip(text), "\n"), "; ");
}

// The long-lived interpreter. A request is one line of byte counts, followed by the expressions.
// The answer is one line of signed byte counts, followed by the texts. A negative count marks an
// error text.
class PythonHelper {
 public:
  // `words`: the interpreter and its options. It serves `program` in `directory` (empty: the
  // engine's own).
  PythonHelper(std::vector<std::string> words, const char* program, std::string directory = {})
      : words_(std::move(words)), directory_(std::move(directory)) {
    words_.emplace_back("-c");
    words_.push_back(std::string(python_begin) + program + python_serve);
  }
  ~PythonHelper() { stop(); }

  // Fills `results` for expressions [first, first + count). Returns false when the helper died.
  // `started` says whether there was a helper process at all.
  bool ask(const std::vector<std::string>& expressions, size_t first, size_t count,
           std::vector<Evaluation>& results) {
    if (pid_ < 0 && !start()) return false;
    std::string request;
    for (size_t i = first; i < first + count; ++i) {
      request += std::to_string(expressions[i].size());
      request += i + 1 < first + count ? ' ' : '\n';
    }
    for (size_t i = first; i < first + count; ++i) request += expressions[i];
    const NoSigpipe guard;
    if (!write_all(to_.get(), request) || !read_answer(first, count, results)) {
      stop();
      return false;
    }
    return true;
  }

  const std::string& start_error() const { return start_error_; }
  const std::string& end_reason() const { return end_reason_; }

  void stop() {
    to_.reset();
    from_.reset();
    if (pid_ < 0) return;
    const int status = wait_for(pid_);
    pid_ = -1;
    if (WIFSIGNALED(status)) {
      end_reason_ = std::string("python3 was ended by signal ") + std::to_string(WTERMSIG(status)) +
                    " (" + strsignal(WTERMSIG(status)) + ") while evaluating it";
    } else {
      end_reason_ = "python3 exited with code " + std::to_string(WEXITSTATUS(status)) +
                    " while evaluating it";
    }
  }

 private:
  bool start() {
    Pipe in, out;
    if (!make_pipe(&in) || !make_pipe(&out)) {
      start_error_ = std::string("cannot start python3: ") + strerror(errno);
      return false;
    }
    const int failed = spawn(words_, directory_, {in.read.get(), out.write.get(), -1}, &pid_);
    if (failed != 0) {
      pid_ = -1;
      start_error_ = failed == ENOENT
                         ? "values of mode python need the program python3, which is not in $PATH; "
                           "install it or put it there"
                         : std::string("cannot start python3: ") + strerror(failed);
      return false;
    }
    start_error_.clear();
    to_ = std::move(in.write);
    from_ = std::move(out.read);
    return true;
  }

  bool read_answer(size_t first, size_t count, std::vector<Evaluation>& results) {
    std::string answer;
    size_t newline;
    while ((newline = answer.find('\n')) == std::string::npos) {
      if (!read_some(from_.get(), &answer)) return false;
    }
    std::vector<long> sizes;
    sizes.reserve(count);
    size_t total = 0;
    const char* at = answer.c_str();
    for (size_t i = 0; i < count; ++i) {
      char* end = nullptr;
      sizes.push_back(strtol(at, &end, 10));
      if (end == at) return false;
      at = end;
      // The count of an error is its text's length plus one, so that an empty error is negative
      // too.
      total += static_cast<size_t>(sizes.back() < 0 ? -sizes.back() - 1 : sizes.back());
    }
    while (answer.size() < newline + 1 + total) {
      if (!read_some(from_.get(), &answer)) return false;
    }
    size_t position = newline + 1;
    for (size_t i = 0; i < count; ++i) {
      Evaluation& result = results[first + i];
      result.ok = sizes[i] >= 0;
      const size_t length = static_cast<size_t>(result.ok ? sizes[i] : -sizes[i] - 1);
      (result.ok ? result.value : result.error) = answer.substr(position, length);
      position += length;
    }
    return true;
  }

  std::vector<std::string> words_;
  std::string directory_;
  pid_t pid_ = -1;
  Fd to_, from_;
  std::string start_error_, end_reason_;
};

std::vector<Evaluation> ask_all(PythonHelper& python, const std::vector<std::string>& expressions) {
  std::vector<Evaluation> results(expressions.size());
  constexpr size_t batch = 4096;
  for (size_t first = 0; first < expressions.size(); first += batch) {
    const size_t count = std::min(batch, expressions.size() - first);
    if (python.ask(expressions, first, count, results)) continue;
    // An expression in the batch ended the helper. Evaluating them one at a time finds it and
    // keeps the results of the others.
    for (size_t i = first; i < first + count; ++i) {
      if (python.ask(expressions, i, 1, results)) continue;
      results[i].ok = false;
      results[i].asked = python.start_error().empty();
      results[i].error = results[i].asked ? python.end_reason() : python.start_error();
    }
  }
  return results;
}

Evaluation environment_value(const std::string& name) {
  Evaluation result;
  const char* value = getenv(name.c_str());
  result.ok = value != nullptr;
  if (result.ok) {
    result.value = value;
  } else {
    result.error = '"' + name + "\" isn't an available environment variable";
  }
  return result;
}

// The program in an absolute folder of PATH. An entry of PATH that depends on the current directory
// would be a stranger's choice. If there is none, the name with a folder in which it is not.
std::string trusted_python() {
  const std::string program = find_program({"python3"});
  return program.empty() ? "/usr/bin/python3" : program;
}

// Parses in a Python that reads nothing of the current directory or the user: -I, -S. It starts in
// /, because a python3 of pyenv reads the file .python-version of its directory.
class PythonReader {
 public:
  PythonReader() : python_({trusted_python(), "-I", "-S"}, python_read, "/") {}
  // `what`: see python_read.
  std::vector<Evaluation> read(char what, std::vector<std::string> expressions) {
    for (std::string& expression : expressions) expression.insert(0, 1, what);
    return ask_all(python_, expressions);
  }

 private:
  PythonHelper python_;
};

// Python's words for the texts that YAML and other languages have.
void explain_name(Evaluation* result) {
  for (const auto& [text, python] : {std::pair{"true", "True"}, {"false", "False"}}) {
    if (result->ok || result->error != std::string("name '") + text + "' is not defined") continue;
    result->error += std::string("; Python's own is ") + python +
                     ", and the text of a parameter is compared as '$name' == '" + text + "'";
  }
}

class RealEvaluator : public Evaluator {
 public:
  RealEvaluator(std::string directory, std::string shell, const std::string& programs)
      : directory_(std::move(directory)), shell_(std::move(shell)) {
    if (programs.empty()) return;
    const char* path = getenv("PATH");
    path_ = "PATH=" + std::string(path != nullptr ? path : "/usr/bin:/bin") + ":";
    path_ += programs;
  }

  std::vector<Evaluation> evaluate(Mode mode,
                                   const std::vector<std::string>& expressions) override {
    std::vector<Evaluation> results(expressions.size());
    if (mode == Mode::python) {
      results = ask_all(python_, expressions);
      for (Evaluation& result : results) explain_name(&result);
      return results;
    }
    for (size_t i = 0; i < expressions.size(); ++i) {
      const std::string& text = expressions[i];
      switch (mode) {
        case Mode::shell:
          results[i] = shell(text);
          break;
        case Mode::perl:
          results[i] = shell("perl -e \"print " + text + "\"", in_one_line);
          break;
        case Mode::env:
          results[i] = environment_value(text);
          break;
        default:
          results[i].ok = true;
          results[i].value = text;
      }
    }
    return results;
  }

  // The process that evaluates also parses: a run need not start another one.
  std::vector<Evaluation> parse(const std::vector<std::string>& expressions) override {
    std::vector<std::string> parsing;
    for (const std::string& expression : expressions) {
      const size_t start = std::min(expression.find_first_not_of(" \t"), expression.size());
      parsing.push_back("compile(" + python_string(expression.substr(start)) +
                        ", '<string>', 'eval', 0x400) and ''");
    }
    return ask_all(python_, parsing);
  }

 private:
  // `summary` turns the standard error of a failed command into an error text.
  Evaluation shell(const std::string& command,
                   std::string (*summary)(std::string_view) = last_line) const {
    Evaluation result;
    Pipe out, err;
    pid_t pid = -1;
    if (!make_pipe(&out) || !make_pipe(&err)) {
      result.error = std::string("cannot start ") + shell_ + ": " + strerror(errno);
      return result;
    }
    const int failed = spawn({shell_, "-c", command}, directory_,
                             {-1, out.write.get(), err.write.get()}, &pid, path_);
    if (failed != 0) {
      result.error = "cannot start " + shell_ + " in " + (directory_.empty() ? "." : directory_) +
                     ": " + strerror(failed);
      return result;
    }
    out.write.reset();
    err.write.reset();
    std::string errors;
    drain(out.read, err.read, &result.value, &errors);
    const int status = wait_for(pid);
    result.ok = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (result.ok) return result;
    result.error = summary(errors);
    if (result.error.empty()) {
      result.error = WIFSIGNALED(status) ? "ended by signal " + std::to_string(WTERMSIG(status))
                                         : "exit code " + std::to_string(WEXITSTATUS(status));
    }
    return result;
  }

  // Reads two pipes to their ends at once, so that neither can fill up and block the child.
  static void drain(Fd& first, Fd& second, std::string* first_text, std::string* second_text) {
    while (first.get() >= 0 || second.get() >= 0) {
      pollfd fds[2] = {{first.get(), POLLIN, 0}, {second.get(), POLLIN, 0}};
      if (poll(fds, 2, -1) < 0) {
        if (errno == EINTR) continue;
        return;
      }
      if (fds[0].revents != 0 && !read_some(first.get(), first_text)) first.reset();
      if (fds[1].revents != 0 && !read_some(second.get(), second_text)) second.reset();
    }
  }

  std::string directory_, shell_;
  std::string path_;  // "PATH=..." for commands; empty: the engine's own
  PythonHelper python_{{"python3"}, python_evaluate};
};

class RefusingEvaluator final : public Evaluator {
 public:
  std::vector<Evaluation> evaluate(Mode mode,
                                   const std::vector<std::string>& expressions) override {
    if (expressions.empty()) return {};
    const char* what = mode == Mode::python ? "Python" : mode == Mode::perl ? "Perl" : "a shell";
    throw std::system_error(
        std::make_error_code(std::errc::operation_not_permitted),
        std::string("--no-exec: ") + what + " would compute \"" + expressions.front() + "\"");
  }
  std::vector<Evaluation> parse(const std::vector<std::string>& expressions) override {
    return reader_.read('s', expressions);
  }

 private:
  PythonReader reader_;
};

class ReadingEvaluator final : public Evaluator {
 public:
  bool computes() const override { return false; }
  std::vector<Evaluation> evaluate(Mode mode,
                                   const std::vector<std::string>& expressions) override {
    std::vector<Evaluation> results(expressions.size());
    std::vector<std::string> whole;
    std::vector<size_t> indexes;
    for (size_t i = 0; i < expressions.size(); ++i) {
      if (mode == Mode::env) {
        results[i] = environment_value(expressions[i]);
      } else {
        results[i].unknown = true;
        // A text with a dollar has names whose values are unknown, too.
        if (mode != Mode::python || has_dollar(expressions[i])) continue;
        whole.push_back(expressions[i]);
        indexes.push_back(i);
      }
    }
    if (whole.empty()) return results;
    const std::vector<Evaluation> read = reader_.read('n', whole);
    for (size_t k = 0; k < indexes.size(); ++k) {
      if (read[k].ok) continue;
      results[indexes[k]] = read[k];
      explain_name(&results[indexes[k]]);
    }
    return results;
  }
  std::vector<Evaluation> parse(const std::vector<std::string>& expressions) override {
    return reader_.read('s', expressions);
  }

 private:
  PythonReader reader_;
};

}  // namespace

std::unique_ptr<Evaluator> make_evaluator(std::string directory, std::string shell,
                                          const std::string& programs) {
  return std::make_unique<RealEvaluator>(std::move(directory), std::move(shell), programs);
}

std::unique_ptr<Evaluator> make_reading_evaluator() {
  return std::make_unique<ReadingEvaluator>();
}

std::unique_ptr<Evaluator> make_refusing_evaluator() {
  return std::make_unique<RefusingEvaluator>();
}

}  // namespace tally
