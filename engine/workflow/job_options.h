// Options of a scheduler: which of them a workflow may set by `options`, and how a job script
// states them. The rules are those of sbatch (22.05 to 25.11). Other schedulers' are in their tables
// (scheduler_table.h).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "engine/workflow/lookup.h"

namespace tally {

// The requests that keys make of the scheduler already. Some options contradict them.
struct JobRequests {
  bool gpus = false;    // gpus_per_node
  bool memory = false;  // memory
};

struct OptionFault {
  std::string message;  // a clause: "option 'time' has the meaning of the key 'time'"
  std::string hint;
};

// Why the option cannot be in a job script: it has the meaning of a key, Tally writes it itself, or
// the scheduler cannot read it. Other options have no fault.
std::optional<OptionFault> option_fault(const std::string& scheduler, const std::string& name,
                                        const std::string& value, const JobRequests& requests);

// Says it of a variable of sbatch's or srun's environment, as SBATCH_TIMELIMIT, SLURM_NTASKS or
// SRUN_EXPORT_ENV, which comes before the options of a job script.
std::optional<OptionFault> variable_fault(const std::string& name, const std::string& value,
                                          const JobRequests& requests);

// `text` as one word of a directive (#SBATCH), quoted where the scheduler needs quotes.
std::string directive_word(const std::string& scheduler, const std::string& text);
// The first word of a Slurm directive's text, as sbatch reads it.
std::string read_directive_word(std::string_view text);
// Why a line of a job script cannot have `text`, a clause; empty if it can.
std::string directive_fault(const std::string& text);

// Why the scheduler cannot read the value of this key of resources or of the platform (`memory`,
// `hint`, `signal`), a clause; empty if it can, or if there are no rules for it.
std::string request_fault(const std::string& scheduler, std::string_view key,
                          const std::string& value);

// Why it cannot be the name of an option: getopt would find more in it than a name.
std::optional<OptionFault> option_name_fault(const std::string& name);
// The key of resources or of the platform that an option's name is, in any spelling; or empty.
std::string key_named(const std::string& name);
// An option in the platform's form: `form` with NAME and VALUE replaced. Without a value, the text
// between NAME and VALUE goes.
std::string option_line(const std::string& form, const std::string& name, const std::string& value);

// The options as lines of a job script. `form` is how the platform writes one, with NAME and VALUE:
// "#SBATCH --NAME=VALUE". An option that is false, or that lacks the value it needs, has no line.
// One that is true has its name alone.
std::string option_lines(const std::string& scheduler, const std::string& form,
                         const NamedValues& options);

}  // namespace tally
