#include "engine/execute/jobs/job_outcome.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "engine/base/files.h"
#include "engine/base/presence.h"
#include "engine/base/text.h"

namespace tally {
namespace {

// The job script's message about a failure, in one line: the first error of the first process that
// failed. It is the program's own text, of any length and with any bytes.
std::string reason_left(const Task& task) {
  constexpr size_t longest = 500;
  const std::string* file = task.values().find("reason_file");
  std::string text;
  if (file == nullptr || file->empty()) return {};
  if (!read_file(absolute_path(*file, task.work_dir()), &text)) return {};
  text = std::string(strip(text.substr(0, text.find('\n'))));
  std::string line;
  for (size_t at = 0, bytes = 0; at < text.size(); at += bytes) {
    bytes = utf8_length(std::string_view(text).substr(at));
    const bool shown = bytes > 1 || (bytes == 1 && text[at] >= ' ' && text[at] != 127);
    if (line.size() + bytes > longest) return line + " ...";
    line += shown ? text.substr(at, bytes) : "?";
    bytes = std::max<size_t>(bytes, 1);
  }
  return line;
}

// Derives the reason from the scheduler's state.
Reason reason_of_end(const JobEnd& end) {
  struct Word {
    std::string_view word;
    Reason reason;
  };
  static constexpr std::array<Word, 7> words{{{"CANCELLED", Reason::job_cancelled},
                                              {"TIMEOUT", Reason::job_time_limit},
                                              {"DEADLINE", Reason::job_time_limit},
                                              {"OUT_OF_MEMORY", Reason::job_memory},
                                              {"NODE_FAIL", Reason::job_node},
                                              {"PREEMPTED", Reason::job_preempted},
                                              {"PENDING", Reason::job_waited}}};
  if (end.kind == JobEnd::Kind::exit) return Reason::job_exit;
  if (end.kind == JobEnd::Kind::rejected) return Reason::job_rejected;
  if (end.kind == JobEnd::Kind::lost) return Reason::job_lost;
  for (const Word& entry : words) {
    if (entry.word == end.word) return entry.reason;
  }
  return Reason::job_failed;
}

// The last `count` lines of a file that do not come from the scheduler. If there are none, the last
// lines of any kind.
std::string last_words(const std::string& file, size_t count) {
  std::vector<std::string> own;
  const std::string text = last_lines(file, 100);
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string line = text.substr(at, end - at);
    at = end + 1;
    if (!starts_with(line, "srun: ") && !starts_with(line, "slurmstepd")) own.push_back(line);
  }
  if (own.empty()) return last_lines(file, count);
  if (own.size() > count) own.erase(own.begin(), own.end() - static_cast<std::ptrdiff_t>(count));
  return join(own, "\n") + "\n";
}

// Appends the last output of the job's program below the text in the outcome's detail.
void add_last_lines(const Task& task, Outcome* outcome) {
  const std::string* name = task.values().find("stderrlogfile");
  const std::string file =
      absolute_path(name != nullptr && !name->empty() ? *name : "stderr", task.work_dir());
  const std::string lines = last_words(file, 5);
  if (strip(lines).empty()) return;
  outcome->file = file;
  outcome->detail =
      outcome->detail.str().substr(0, outcome->detail.str().find('\n')) + "\n" + lines;
}

Outcome failure_of_job(const Task& task, const JobEnd& end) {
  Outcome outcome = failure(reason_of_end(end), end.words);
  outcome.exit_code = end.exit_code;
  if (end.kind == JobEnd::Kind::lost) outcome.state = State::lost;
  if (end.kind == JobEnd::Kind::exit) {
    const std::string* out = task.values().find("stdoutlogfile");
    const std::string path =
        absolute_path(out != nullptr && !out->empty() ? *out : "stdout", task.work_dir());
    outcome.detail = reason_left(task);
    outcome.directory = path.substr(0, path.rfind('/'));
  }
  if (end.kind != JobEnd::Kind::rejected) add_last_lines(task, &outcome);
  return outcome;
}

}  // namespace

Outcome outcome_of_job(const Task& task, const JobEnd& end) {
  std::string outcome;
  // The scheduler's word about an allocation that several share is said of none of them: one has
  // its own exit status, or did not end in time.
  const bool shared = task.step().pack.kind.value == "steps";
  if (end.kind == JobEnd::Kind::exit || (shared && end.exit_code != 0))
    outcome = task.step().kinds->outcome_of(end.exit_code);
  if (!shared && end.word == "TIMEOUT") outcome = "timeout";
  if (!shared && end.word == "OUT_OF_MEMORY") outcome = "oom";
  if (end.kind == JobEnd::Kind::exit && end.exit_code == 0) return in_state(State::done);
  if (task.step().kinds->is_expected(task.step(), outcome, task.values().lookup()) &&
      end.kind != JobEnd::Kind::lost) {
    return in_state(State::expected, expected_reason(outcome));
  }
  return failure_of_job(task, end);
}

}  // namespace tally
