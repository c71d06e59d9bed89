#include "engine/workpackage/outcome.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "engine/base/text.h"

namespace tally {
namespace {

struct Name {
  Reason reason;
  const char* name;
};
constexpr std::array<Name, 29> names{{{Reason::value, "value"},
                                      {Reason::files, "files"},
                                      {Reason::directory, "directory"},
                                      {Reason::platform, "platform"},
                                      {Reason::gpus, "gpus"},
                                      {Reason::host, "host"},
                                      {Reason::command, "command"},
                                      {Reason::signal, "signal"},
                                      {Reason::error_file, "error_file"},
                                      {Reason::shared_failed, "shared_failed"},
                                      {Reason::time_limit, "time_limit"},
                                      {Reason::job_exit, "job_exit"},
                                      {Reason::job_rejected, "job_rejected"},
                                      {Reason::job_failed, "job_failed"},
                                      {Reason::job_cancelled, "job_cancelled"},
                                      {Reason::job_time_limit, "job_time_limit"},
                                      {Reason::job_memory, "job_memory"},
                                      {Reason::job_node, "job_node"},
                                      {Reason::job_preempted, "job_preempted"},
                                      {Reason::job_waited, "job_waited"},
                                      {Reason::job_lost, "job_lost"},
                                      {Reason::expected_memory, "expected_memory"},
                                      {Reason::expected_time_limit, "expected_time_limit"},
                                      {Reason::expected_check, "expected_check"},
                                      {Reason::done_file, "done_file"},
                                      {Reason::before_shared, "before_shared"},
                                      {Reason::interrupted, "interrupted"},
                                      {Reason::job_withdrawn, "job_withdrawn"},
                                      {Reason::reused, "reused"}}};

// The sentence, then the last lines of standard error, which follow the first line of `detail`.
std::string with_last_lines(const Outcome& outcome, const std::string& sentence) {
  const size_t line = outcome.detail.str().find('\n');
  if (outcome.file.empty() || line == std::string::npos) return sentence;
  return sentence + "\nMessage in \"" + outcome.file + "\":\n" +
         outcome.detail.str().substr(line + 1);
}

std::string signal_name(int signal) {
  const char* name = strsignal(signal);
  return "signal " + std::to_string(signal) + " (" + (name != nullptr ? name : "unknown") + ")";
}

// JUBE's message, with the exit code.
std::string message_of_command(const Outcome& outcome) {
  std::string text = "Error (returncode <> 0) while running \"" + outcome.command +
                     "\" in directory \"" + outcome.directory + "\"\nMessage in \"" + outcome.file +
                     "\":\n" + outcome.detail;
  if (outcome.reason == Reason::signal) {
    if (text.back() != '\n') text += '\n';
    text += "It was ended by " + signal_name(outcome.signal);
  } else if (outcome.exit_code > 0) {
    if (text.back() != '\n') text += '\n';
    text += "It ended with exit code " + std::to_string(outcome.exit_code);
  }
  return text;
}

std::string message_of_job(const Outcome& outcome) {
  const std::string words = outcome.detail.str().substr(0, outcome.detail.str().find('\n'));
  return with_last_lines(outcome, "the job's program ended with exit code " +
                                      std::to_string(outcome.exit_code) +
                                      (words.empty() ? "" : ": " + words) +
                                      "; its output is in \"" + outcome.directory + "\"");
}

// Compilers, make and srun end with such lines after the one that says what is wrong.
bool says_only_that_it_ended(std::string_view line) {
  const auto has = [&](std::string_view words) {
    return line.find(words) != std::string_view::npos;
  };
  if (line == "compilation terminated." || has("ninja: build stopped")) return true;
  if (line.find_first_not_of("-=*^~| ") == std::string_view::npos) return true;
  if (starts_with(line, "make")) return has("] Error ") || has("ing directory ");
  if (starts_with(line, "srun: "))
    return has(": Exited with exit code ") || has("Job step aborted") || has("launch/slurm");
  if (starts_with(line, "slurmstepd")) return has(" CANCELLED AT ");
  return starts_with(line, "collect2: ");
}

// The line of a program's last ones that most likely says what is wrong: the last that calls itself
// an error, else the last that says something.
std::string telling_line(std::string_view text) {
  std::string_view last, says, error;
  for (text = strip(text); !text.empty();) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = strip(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty()) continue;
    last = line;
    if (says_only_that_it_ended(line)) continue;
    says = line;
    for (const char* word : {"error:", "Error:", "ERROR:"})
      if (line.find(word) != std::string_view::npos) error = line;
  }
  std::string_view found = !error.empty() ? error : !says.empty() ? says : last;
  // The node differs where the error is the same.
  if (starts_with(found, "slurmstepd")) found = strip(found.substr(found.find(':') + 1));
  return std::string(found);
}

std::string with_reason(std::string what, const std::string& why) {
  if (what.empty()) return why;
  return why.empty() ? what : what + ": " + why;
}

}  // namespace

std::optional<State> state_named(std::string_view name) {
  for (const State state : {State::pending, State::running, State::waiting, State::done,
                            State::failed, State::expected, State::lost, State::changed}) {
    if (name == state_name(state)) return state;
  }
  return std::nullopt;
}

const char* state_name(State state) {
  switch (state) {
    case State::pending:
      return "pending";
    case State::running:
      return "running";
    case State::waiting:
      return "waiting";
    case State::done:
      return "done";
    case State::failed:
      return "failed";
    case State::expected:
      return "expected";
    case State::lost:
      return "lost";
    case State::changed:
      return "changed";
  }
  return "unknown";
}

const char* reason_name(Reason reason) {
  if (reason == Reason::none) return "";
  const auto* const found =
      std::ranges::find_if(names, [&](const Name& entry) { return entry.reason == reason; });
  return found == names.end() ? "other" : found->name;
}

Reason reason_of(std::string_view name) {
  if (name.empty()) return Reason::none;
  const auto* const found =
      std::ranges::find_if(names, [&](const Name& entry) { return entry.name == name; });
  return found == names.end() ? Reason::other : found->reason;
}

bool is_failure_of_command(Reason reason) {
  return reason == Reason::command || reason == Reason::signal || reason == Reason::error_file ||
         reason == Reason::shared_failed;
}

Reason expected_reason(std::string_view outcome) {
  if (outcome == "oom") return Reason::expected_memory;
  if (outcome == "timeout") return Reason::expected_time_limit;
  if (outcome == "check") return Reason::expected_check;
  return Reason::none;
}

Outcome in_state(State state, Reason reason) {
  Outcome outcome;
  outcome.state = state;
  outcome.reason = reason;
  return outcome;
}

Outcome failure(Reason reason, std::string detail) {
  Outcome outcome;
  outcome.state = State::failed;
  outcome.reason = reason;
  outcome.detail = std::move(detail);
  return outcome;
}

std::string grounds_of_reuse(const Outcome& outcome) {
  return "commands, environment and files are " +
         (outcome.workpackage >= 0 ? "those of workpackage " + std::to_string(outcome.workpackage)
                                   : outcome.detail.str());
}

namespace {

// The scheduler ended the job, and did not say with which exit status of its program.
bool is_end_by_scheduler(Reason reason) {
  switch (reason) {
    case Reason::job_failed:
    case Reason::job_cancelled:
    case Reason::job_time_limit:
    case Reason::job_memory:
    case Reason::job_node:
    case Reason::job_preempted:
    case Reason::job_lost:
      return true;
    default:
      return false;
  }
}

}  // namespace

std::string message_in_short(const Outcome& outcome) {
  const std::string& detail = outcome.detail.str();
  const std::string first = first_line(detail);
  const std::string told = telling_line(detail.substr(first.size()));
  if (is_end_by_scheduler(outcome.reason))
    return with_reason(first, outcome.file.empty() ? "" : told);
  switch (outcome.reason) {
    case Reason::command:
      return with_reason(outcome.exit_code > 0 ? "exit code " + std::to_string(outcome.exit_code)
                                               : "its command failed",
                         telling_line(detail));
    case Reason::signal:
      return with_reason(signal_name(outcome.signal), telling_line(detail));
    case Reason::error_file:
      return "error file \"" + outcome.file + "\"";
    case Reason::time_limit:
      return "time limit of " + outcome.detail + " reached";
    case Reason::job_exit:
      return with_reason("exit code " + std::to_string(outcome.exit_code),
                         told.empty() ? first : told);
    default:
      return first_line(message(outcome));
  }
}

std::string message(const Outcome& outcome) {
  if (is_end_by_scheduler(outcome.reason) && !outcome.file.empty())
    return with_last_lines(outcome, first_line(outcome.detail.str()));
  switch (outcome.reason) {
    case Reason::command:
    case Reason::signal:
      return message_of_command(outcome);
    case Reason::error_file:
      return "Error file \"" + outcome.file + "\" found after running the command \"" +
             outcome.command + "\".";
    case Reason::shared_failed:
      return "shared operation failed in workpackage " + std::to_string(outcome.workpackage);
    case Reason::time_limit:
      return "time limit of " + outcome.detail + " reached while running \"" + outcome.command +
             "\" in directory \"" + outcome.directory + "\"";
    case Reason::job_exit:
      return message_of_job(outcome);
    case Reason::expected_memory:
      return "out of memory";
    case Reason::expected_time_limit:
      return "time limit";
    case Reason::expected_check:
      return "check failed";
    case Reason::done_file:
      return "waits for \"" + outcome.file + "\"" +
             (outcome.detail.empty() ? "" : ": " + outcome.detail);
    case Reason::before_shared:
      return "stands before a shared command";
    case Reason::interrupted:
      return "interrupted";
    case Reason::job_withdrawn:
      return "its job was cancelled";
    case Reason::reused:
      return "reused: " + grounds_of_reuse(outcome);
    default:
      return outcome.detail;
  }
}

}  // namespace tally
