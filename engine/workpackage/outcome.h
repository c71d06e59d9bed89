// How a workpackage came to its state, as data. Decisions use this data, and the journal stores it.
// message() is the one place that turns it into sentences for people, when they are printed.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "engine/base/compact.h"
#include "engine/base/diagnostics.h"

namespace tally {

enum class State {
  pending,  // created, not started
  running,  // a command runs, or its job is queued or runs
  waiting,  // JUBE's done_file does not exist yet; `continue` checks again
  done,
  failed,
  expected,  // ended in an outcome that its step's `expect` names (out of memory, time
             // limit): a result
  lost,      // its fate cannot be established; fails the run, never a success
  changed,   // done, but its output has changed since. Only in results: no journal has it.
};
constexpr size_t state_count = 8;
const char* state_name(State state);
// The state of that name, if there is one.
std::optional<State> state_named(std::string_view name);
// True for done (also changed) and expected: children may be created, and the workpackage has a row
// in the table.
inline bool finished_well(State s) {
  return s == State::done || s == State::expected || s == State::changed;
}
inline bool has_failed(State s) {
  return s == State::failed || s == State::lost;
}
inline bool has_ended(State s) {
  return finished_well(s) || has_failed(s);
}

// The journal stores the names from reason_name(), so an existing name must never change.
enum class Reason {
  none,
  // failed: it could not be started or resumed.
  value,      // a parameter, or an expression of its step, cannot be computed
  files,      // a file set or a substitution failed
  directory,  // a directory that it needs cannot be made
  platform,   // its platform or its pack cannot take it
  gpus,       // it needs more than this machine has
  host,       // this host could not start its process
  // failed: because of its commands.
  command,        // the command ended with exit_code
  signal,         // the command was ended by `signal`
  error_file,     // the command left its error_file
  shared_failed,  // a shared operation failed, which `workpackage` ran
  time_limit,     // the step's time limit was reached
  // failed or lost: because of its job.
  job_exit,        // the program ended with exit_code
  job_rejected,    // the scheduler rejected it
  job_failed,      // the scheduler ended it
  job_cancelled,   // a person cancelled it
  job_time_limit,  // the job's time limit was reached
  job_memory,
  job_node,       // a node failed
  job_preempted,  // preempted in favour of another job
  job_waited,     // removed from the queue, where it would have waited too long
  job_lost,       // its fate is unknown
  // expected
  expected_memory,
  expected_time_limit,
  expected_check,
  // waiting
  done_file,      // `file` does not exist yet
  before_shared,  // the run ended before its siblings reached a shared operation; it resumes there
  // pending again
  interrupted,    // the engine was stopped
  job_withdrawn,  // its job was cancelled when the engine was stopped
  // done
  reused,  // the work of `workpackage`, or of what `detail` names, was reused
  other,   // a reason that this version does not know
};
// The name as the journal stores it, such as "command". Empty for Reason::none.
const char* reason_name(Reason reason);
// The reason with this name. Reason::other for an unknown name.
Reason reason_of(std::string_view name);
// True when a command of its own failed or left its error_file. JUBE carries on after such a
// failure and gives up after any other.
bool is_failure_of_command(Reason reason);
// The reason for a failure that the step expects. `outcome` is the name that `expect` uses ("oom").
Reason expected_reason(std::string_view outcome);

struct Outcome {
  State state = State::pending;
  Reason reason = Reason::none;
  int exit_code = 0;     // for command and job_*; -1: unknown
  int signal = 0;        // the signal that ended the command
  int workpackage = -1;  // the other workpackage, for shared_failed and reused
  Mark place;            // in the user's file: the value or command concerned, else the step
  RareText command;      // the command that ran last
  RareText directory;    // where it ran
  RareText file;         // its standard error, the error_file or the done_file
  // Text from outside: the last lines of standard error, or what the system or a scheduler
  // reported. For time_limit: the limit, as the user wrote it. For job_* with a `file`: the first
  // line holds what the scheduler or the script reported, and may be empty; the last lines of that
  // file follow.
  RareText detail;
};
Outcome in_state(State state, Reason reason = Reason::none);
Outcome failure(Reason reason, std::string detail);

// The outcome in one sentence or a few lines, with JUBE's own words where it has some. Empty when
// there is nothing to report.
std::string message(const Outcome& outcome);
// The same on one line that says what and not where, so that equal outcomes have equal texts: "exit
// code 1: no such file".
std::string message_in_short(const Outcome& outcome);
// For reused: what is the same as what, without the word "reused".
std::string grounds_of_reuse(const Outcome& outcome);

}  // namespace tally
