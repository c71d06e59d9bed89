// A scheduler as a table: its commands, how their answers are read, what its states mean, and how a
// job script states what a job asks for. Tables are files, templates/schedulers/NAME.yaml
// (docs/schedulers.md); engine/read/scheduler_file.h reads them.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/workflow/job_options.h"

namespace tally {

// Meanings of a job's state for a run. `unknown` leads to no conclusion, `lost` is that of a job
// that the scheduler says not to have.
enum class JobMeaning {
  unknown,
  queued,
  stuck,  // queued for a reason that does not pass
  running,
  ending,
  ended,  // without an error that the scheduler can see
  failed,
  cancelled,
  timeout,
  memory,
  node,
  preempted,
  lost,
};
// The meaning by its name in tables.
const std::vector<std::pair<std::string_view, JobMeaning>>& job_meanings();

// How the answer of a command is read.
struct AnswerForm {
  enum class Kind {
    columns,  // a line a job: fields between separators, of which the last takes the rest
    xml,      // <FIELD ...>value</FIELD>
    equals,   // FIELD = value; a line that begins with a tab goes on
    blanks,   // FIELD   value
  };
  Kind kind = Kind::columns;
  std::string separator;            // columns
  std::vector<std::string> fields;  // columns: their names
  // The others: the words with which the line begins that a job begins with. The rest of that
  // line is the field `begin`.
  std::string begin;
  std::string end;                            // with which the line begins that no job is behind
  std::string complete;                       // a text that every whole answer has
  std::string time;                           // of moments, as strptime() reads them
  std::map<std::string, std::string> values;  // a name of ours -> the scheduler's field
};

struct TableQuestion {
  // $ids: the jobs, a word each; $user, $since.
  std::vector<std::string> command;
  AnswerForm answer;
  // Words of an error that says only that jobs are not known.
  std::vector<std::string> unknown_job;
  bool given() const { return !command.empty(); }
};

// The state of a job whose fields match. Patterns are those of file names.
struct StateRule {
  JobMeaning meaning = JobMeaning::unknown;
  std::vector<std::pair<std::string, std::vector<std::string>>> when;  // field -> one of patterns
};

// How a directive states texts, and which options `options` may have.
struct DirectiveRules {
  std::string prefix;              // "#PBS "
  std::vector<std::string> lines;  // with $values; {...} is a part that may be missing
  std::string option;              // "-NAME VALUE"
  std::string plain;               // characters that need no quotes, beside letters and digits
  std::string quotes;   // characters that quote; none: a text that needs quotes is an error
  std::string never;    // characters that the scheduler cannot read in a directive
  std::string in_name;  // characters of a job's name, beside letters and digits
  std::map<std::string, std::string> memory;     // k, m, g, t -> the scheduler's unit
  std::vector<std::string> with_value, without;  // options; empty: they are not known
  std::vector<std::string> adds_up;              // options of which each asks for something more
  std::vector<std::string> several;              // options whose value is several words
  // OPTION or "OPTION:TEXT" (one whose value has the text) -> the key that has its meaning.
  std::map<std::string, std::string> keys;
  std::map<std::string, std::string> own;  // the same -> why a workflow may not set it
};

struct SchedulerTable {
  std::string name, title;
  std::string tested;  // on which version; empty: on none
  std::string file;    // the table's file
  // Submission.
  std::vector<std::string> submit;  // $name, $script
  std::string id;                   // how the id stands in what it prints: "Job <$id> is submitted"
  std::vector<std::string> full, away;   // words of errors: too many jobs; it cannot be reached
  std::vector<std::string> environment;  // variables that select the installation
  std::string letter;                    // put before a job's name that begins with none
  // Questions.
  TableQuestion query, account;
  std::vector<std::string> find;    // instead of query's command, when ids are not known
  std::vector<std::string> cancel;  // $ids
  std::string since;                // the form of $since, as strftime() writes it
  double pause = 1;                 // the least seconds between two queries
  std::vector<StateRule> states;
  // Descriptions of the cluster, for people.
  std::vector<std::string> programs;  // they are where this scheduler is
  std::vector<std::string> queues;    // prints a line a queue, as scheduler.h says
  std::vector<std::string> accounts;  // prints a line an account; $user
  // Job scripts.
  DirectiveRules directives;
  std::string launcher;                        // what starts several tasks: "mpirun -n $tasks"
  std::vector<std::string> script;             // lines before anything else
  std::string job_id, job_name, job_restarts;  // variables that a job has
};

// Names of values that directives may have, for the table's check.
const std::vector<std::string_view>& directive_values();
// Names of values of a job that answers may have.
const std::vector<std::string_view>& answer_values();

// The meaning of the fields of a job, by the first rule that holds. Without one: unknown.
JobMeaning meaning_of(const SchedulerTable& table,
                      const std::map<std::string, std::string>& fields);

// A text as one word of a directive, quoted where it needs quotes.
std::string directive_word(const SchedulerTable& table, const std::string& text);
// Why a directive cannot have the text, a clause; empty if it can.
std::string directive_fault(const SchedulerTable& table, const std::string& text);
std::string job_name_word(const SchedulerTable& table, const std::string& name);
// Why the option cannot be in a job script, as option_fault() of job_options.h.
std::optional<OptionFault> option_fault(const SchedulerTable& table, const std::string& name,
                                        const std::string& value, const JobRequests& requests);
std::string option_lines(const SchedulerTable& table, const NamedValues& options);
bool adds_up(const SchedulerTable& table, const std::string& option);

// An amount of memory (64G, 500M, 64gb, 4096: MiB) in the scheduler's unit. Empty: it is none.
std::string memory_word(const SchedulerTable& table, const std::string& amount);
// Why the scheduler cannot read the value of this key, a clause; empty if it can.
std::string request_fault(const SchedulerTable& table, std::string_view key,
                          const std::string& value);
// The directives of a job. A line, or a part in braces, of which a value is empty is left out, and
// so is a line whose option `options` sets. Values are quoted words already.
std::string directive_lines(const SchedulerTable& table,
                            const std::map<std::string, std::string>& values,
                            const NamedValues& options);

}  // namespace tally
