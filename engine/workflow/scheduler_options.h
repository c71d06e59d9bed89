// The options of sbatch, qsub and bsub. Internal to job_options.cc.
#pragma once

#include <vector>

namespace tally {

enum class OptionArgument { none, optional, required };

enum class OptionUse {
  free,           // a workflow may set it
  key,            // it has the meaning of a key, which `instead` names
  own,            // Tally sets it, or it would break how Tally follows jobs; `instead` is a hint
  beside_gpus,    // free unless gpus_per_node is given
  beside_memory,  // free unless memory is given
};

struct SlurmOption {
  const char* name;
  char letter;  // '\0': it has no short form
  OptionArgument argument;
  OptionUse use = OptionUse::free;
  const char* instead = "";
  const char* values = "";  // the only ones that it takes, if not empty
};

// The options of sbatch 22.05, from its manual page and its program, and those that 23.02 to 25.11
// added, from their manual pages.
const std::vector<SlurmOption>& slurm_options();

}  // namespace tally
