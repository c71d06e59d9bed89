// How a workpackage came to its state, as data: what is decided rests on it, and the journal keeps
// it. Sentences for people are made from it when they are printed, in one place: message().
#pragma once

#include <string>
#include <string_view>

#include "engine/base/mark.h"
#include "engine/base/rare_text.h"

namespace tally {

enum class State {
  pending,  // created, not started
  running,  // a command runs, or its job is queued or runs
  waiting,  // JUBE's done_file is not there yet: asked again by `continue`
  done,
  failed,
  expected,  // ended in an outcome that its step's `expect` names (out of memory, time limit): a
             // result
  lost,      // its fate cannot be established; fails the run, never a success
};
const char* state_name(State state);
// done or expected: its children may be created and it has a row in the table.
inline bool finished_well(State s) {
  return s == State::done || s == State::expected;
}

// The journal keeps the names, reason_name(): one that is here stays.
enum class Reason {
  none,
  // failed: it could not be begun, or not gone on with.
  value,      // a parameter, or an expression of its step, cannot be computed
  files,      // of a file set or a substitution
  directory,  // one that it needs cannot be made
  platform,   // its platform, or its pack, cannot take it
  gpus,       // it needs more than this machine has
  host,       // this host could not start its process
  // failed: by its commands.
  command,        // ended with exit_code
  signal,         // ended by `signal`
  error_file,     // the command left it
  shared_failed,  // a shared operation, which `workpackage` ran
  time_limit,     // of its step
  // failed or lost: by its job.
  job_exit,        // the program ended with exit_code
  job_rejected,    // the scheduler does not take it
  job_failed,      // ended by the scheduler
  job_cancelled,   // by a person
  job_time_limit,  // of the job
  job_memory,
  job_node,       // a node failed
  job_preempted,  // for another one's job
  job_waited,     // taken out of the queue, where it would have waited too long
  job_lost,       // nobody knows
  // expected
  expected_memory,
  expected_time_limit,
  expected_check,
  // waiting
  done_file,      // `file` is not there yet
  before_shared,  // the run ended before its siblings came to a shared operation; it goes on there
  // pending, again
  interrupted,    // by whoever stopped the engine
  job_withdrawn,  // its job was cancelled by whoever stopped the engine
  // done
  reused,  // the work is that of `workpackage`, or what `detail` says
  // What a journal of version 1 says in words of which no other reason is known.
  other,
};
// "command"; empty of none.
const char* reason_name(Reason reason);
// Reason::other of a name that is not known.
Reason reason_of(std::string_view name);
// A command of its own failed, or left its error_file: JUBE goes on after that, and gives up after
// any other failure.
bool is_failure_of_command(Reason reason);
// The reason of a failure that the step expects, by the name that `expect` has for it ("oom").
Reason expected_reason(std::string_view outcome);

struct Outcome {
  State state = State::pending;
  Reason reason = Reason::none;
  int exit_code = 0;     // command, job_*; -1: not known
  int signal = 0;        // that ended the command
  int workpackage = -1;  // another one, of shared_failed and reused
  Mark place;            // what it was at in the user's file: a value, a command, else its step
  RareText command;      // that was run last
  RareText directory;    // where it ran
  RareText file;         // what the command's standard error went to; error_file; done_file
  // Other people's words: the last lines of standard error, the system's, a scheduler's; the limit
  // of time_limit, as it is written. Of job_* with a `file`: the scheduler's or the script's words
  // in the first line, which may be empty, then the last lines of that file.
  RareText detail;
};
Outcome in_state(State state, Reason reason = Reason::none);
Outcome failure(Reason reason, std::string detail);

// In one sentence or a few lines, JUBE's own words where it has some. Empty where there is nothing
// to say.
std::string message(const Outcome& outcome);
// Of reused: what is the same as what, without the word "reused".
std::string grounds_of_reuse(const Outcome& outcome);

}  // namespace tally
