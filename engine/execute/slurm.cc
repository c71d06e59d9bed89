#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "engine/base/text.h"
#include "engine/execute/scheduler.h"

namespace tally {
namespace {

struct Answer {
  int status = -1;  // exit code; -1: could not be run, or took too long
  std::string out, err;
};

// Takes what has come on a pipe; false when it has ended.
bool drain(int fd, std::string& text) {
  std::array<char, 4096> buffer{};
  const ssize_t got = read(fd, buffer.data(), buffer.size());
  if (got > 0) text.append(buffer.data(), static_cast<size_t>(got));
  return got > 0 || (got < 0 && errno == EINTR);
}

// Runs a command of the scheduler, a minute at most: when munge or the controller is away they
// hang.
Answer ask(const std::vector<std::string>& words, const std::string& directory,
           const std::vector<std::string>* environment) {
  Answer answer;
  std::array<int, 2> out{}, err{};
  if (pipe2(out.data(), O_CLOEXEC) != 0) return answer;
  if (pipe2(err.data(), O_CLOEXEC) != 0) {
    close(out[0]);
    close(out[1]);
    return answer;
  }
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  if (!directory.empty()) posix_spawn_file_actions_addchdir_np(&actions, directory.c_str());
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out[1], 1);
  posix_spawn_file_actions_adddup2(&actions, err[1], 2);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  // Ctrl-C is for the engine: a submission is not to be torn apart.
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
  std::vector<char*> argv, env;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  if (environment != nullptr) {
    for (const std::string& entry : *environment) env.push_back(const_cast<char*>(entry.c_str()));
    env.push_back(nullptr);
  }
  pid_t pid = 0;
  const int failed = posix_spawnp(&pid, argv.front(), &actions, &attributes, argv.data(),
                                  environment != nullptr ? env.data() : environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  close(out[1]);
  close(err[1]);
  if (failed != 0) {
    answer.err = words.front() + ": " + strerror(failed);
  } else {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    std::array<pollfd, 2> waiting{{{out[0], POLLIN, 0}, {err[0], POLLIN, 0}}};
    while (waiting[0].fd >= 0 || waiting[1].fd >= 0) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
          end - std::chrono::steady_clock::now());
      if (left.count() <= 0) {
        kill(-pid, SIGKILL);
        answer.err += words.front() + ": no answer within a minute";
        break;
      }
      if (poll(waiting.data(), waiting.size(), static_cast<int>(left.count())) <= 0) continue;
      if (waiting[0].revents != 0 && !drain(out[0], answer.out)) waiting[0].fd = -1;
      if (waiting[1].revents != 0 && !drain(err[0], answer.err)) waiting[1].fd = -1;
    }
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (WIFEXITED(status)) answer.status = WEXITSTATUS(status);
  }
  close(out[0]);
  close(err[0]);
  return answer;
}

std::string words_of(const Answer& answer, const std::string& command) {
  const std::string text(strip(answer.err.empty() ? answer.out : answer.err));
  return command + ": " + (text.empty() ? "failed without a word" : text);
}

bool is_transient(const std::string& words) {
  for (const char* sign :
       {"Unable to contact slurm controller", "Socket timed out", "Protocol authentication error",
        "Slurm temporarily unable to accept job", "Zero Bytes were transmitted",
        "no answer within a minute", "Resource temporarily unavailable"}) {
    if (words.find(sign) != std::string::npos) return true;
  }
  return false;
}

// Variables of an allocation the engine itself runs in would change the job: kept out.
std::vector<std::string> clean_environment(const std::vector<std::string>& environment) {
  std::vector<std::string> clean;
  for (const std::string& entry : environment) {
    if (starts_with(entry, "SBATCH_") || starts_with(entry, "SRUN_")) continue;
    if (starts_with(entry, "SLURM_") && !starts_with(entry, "SLURM_CONF=")) continue;
    clean.push_back(entry);
  }
  return clean;
}

// A state's first word only: "CANCELLED by 1000".
JobReport report_of(const std::string& state, const std::string& reason) {
  const std::string word = state.substr(0, state.find_first_of(" +"));
  static const std::vector<std::string> queued{"PENDING",      "CONFIGURING", "REQUEUED",
                                               "REQUEUE_HOLD", "REQUEUE_FED", "RESV_DEL_HOLD",
                                               "SPECIAL_EXIT"};
  static const std::vector<std::string> running{"RUNNING",  "COMPLETING", "SUSPENDED",
                                                "STOPPED",  "STAGE_OUT",  "SIGNALING",
                                                "RESIZING", "PREEMPTED"};
  const auto is = [&](const std::vector<std::string>& list) {
    for (const std::string& entry : list) {
      if (entry == word) return true;
    }
    return false;
  };
  if (is(queued)) return {JobState::queued, reason};
  if (is(running)) return {JobState::running, reason};
  return {JobState::ended, word + (reason.empty() || reason == "None" ? "" : " (" + reason + ")")};
}

class Slurm final : public Scheduler {
 public:
  Status submit(const JobRequest& request, std::string* id, bool* transient) override {
    std::vector<std::string> words;
    for (std::string& word : split_words(request.submit)) words.push_back(std::move(word));
    words.push_back("--job-name=" + request.name);
    words.push_back(request.script);
    const std::vector<std::string> environment = clean_environment(request.environment);
    const Answer answer = ask(words, request.directory, &environment);
    if (answer.status != 0) {
      const std::string said = words_of(answer, words.front());
      *transient = is_transient(said);
      return Status::error(said);
    }
    *transient = false;
    // "123" or "123;cluster" of --parsable, or "Submitted batch job 123".
    std::string text(strip(answer.out));
    if (const size_t line = text.rfind('\n'); line != std::string::npos)
      text = text.substr(line + 1);
    if (const size_t blank = text.rfind(' '); blank != std::string::npos)
      text = text.substr(blank + 1);
    text = text.substr(0, text.find(';'));
    if (text.empty() || text.find_first_not_of("0123456789_") != std::string::npos) {
      return Status::error(words.front() +
                           " took the job but gave no id: " + std::string(strip(answer.out)));
    }
    *id = text;
    return Status::ok();
  }

  Status find(const std::string& name, std::string* id) override {
    id->clear();
    const Answer answer =
        ask({"squeue", "--noheader", "--states=all", "--name=" + name, "--format=%i"}, "", nullptr);
    if (answer.status != 0) return Status::error(words_of(answer, "squeue"));
    for (const std::string& line : split_strip(answer.out, "\n")) {
      if (!line.empty()) *id = line;
    }
    return Status::ok();
  }

  Status query(const std::vector<std::string>& ids,
               std::map<std::string, JobReport>* reports) override {
    // A few hundred ids a call: a command line has an end.
    for (size_t at = 0; at < ids.size(); at += 500) {
      std::string list;
      for (size_t i = at; i < ids.size() && i < at + 500; ++i) {
        if (!list.empty()) list += ',';
        list += ids[i];
      }
      const Answer answer =
          ask({"squeue", "--noheader", "--states=all", "--jobs=" + list, "--format=%i|%T|%r"}, "",
              nullptr);
      // One unknown id alone is an error of squeue's, and an answer.
      if (answer.status != 0 && answer.err.find("Invalid job id specified") == std::string::npos) {
        return Status::error(words_of(answer, "squeue"));
      }
      for (const std::string& line : split_strip(answer.out, "\n")) {
        const std::vector<std::string> fields = split_strip(line, "|");
        if (fields.size() >= 3) (*reports)[fields[0]] = report_of(fields[1], fields[2]);
      }
    }
    return Status::ok();
  }

  Status cancel(const std::vector<std::string>& ids) override {
    std::vector<std::string> words{"scancel"};
    words.insert(words.end(), ids.begin(), ids.end());
    const Answer answer = ask(words, "", nullptr);
    return answer.status == 0 ? Status::ok() : Status::error(words_of(answer, "scancel"));
  }

 private:
  static std::vector<std::string> split_words(const std::string& text) {
    std::vector<std::string> words;
    for (std::string& word : split_strip(text, " ")) {
      if (!word.empty()) words.push_back(std::move(word));
    }
    return words;
  }
};

}  // namespace

std::unique_ptr<Scheduler> make_slurm_scheduler() {
  return std::make_unique<Slurm>();
}

}  // namespace tally
