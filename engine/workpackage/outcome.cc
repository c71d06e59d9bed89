#include "engine/workpackage/outcome.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

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

// JUBE's message, with the exit code.
std::string message_of_command(const Outcome& outcome) {
  std::string text = "Error (returncode <> 0) while running \"" + outcome.command +
                     "\" in directory \"" + outcome.directory + "\"\nMessage in \"" + outcome.file +
                     "\":\n" + outcome.detail;
  if (outcome.reason == Reason::signal) {
    const char* name = strsignal(outcome.signal);
    if (text.back() != '\n') text += '\n';
    text += "It was ended by signal " + std::to_string(outcome.signal) + " (" +
            (name != nullptr ? name : "unknown") + ")";
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
  const auto* const found = std::find_if(names.begin(), names.end(),
                                         [&](const Name& entry) { return entry.reason == reason; });
  return found == names.end() ? "other" : found->name;
}

Reason reason_of(std::string_view name) {
  if (name.empty()) return Reason::none;
  const auto* const found = std::find_if(names.begin(), names.end(),
                                         [&](const Name& entry) { return entry.name == name; });
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

std::string message(const Outcome& outcome) {
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
    case Reason::job_failed:
    case Reason::job_cancelled:
    case Reason::job_time_limit:
    case Reason::job_memory:
    case Reason::job_node:
    case Reason::job_preempted:
    case Reason::job_lost:
      if (outcome.file.empty()) return outcome.detail;
      return with_last_lines(outcome,
                             outcome.detail.str().substr(0, outcome.detail.str().find('\n')));
    default:
      return outcome.detail;
  }
}

}  // namespace tally
