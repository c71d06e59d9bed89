// The inputs that the result of a setup or build step depends on. Workpackages with equal inputs
// share one execution of the step. The dry run and the real run call the same function.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "engine/base/status.h"
#include "engine/workflow/workflow.h"
#include "engine/workpackage/values.h"
#include "engine/workspace/environment.h"

namespace tally {

struct StepInputs {
  std::string step;
  std::vector<std::string> commands;  // after substitution, file sets' entries included
  NamedValues parents;                // the step, and the identity of the work that it left
  NamedValues environment;            // variables that the step sets or names, and compiler flags
  NamedValues files;                  // path, or target in the work directory, with a digest
  std::vector<std::string> notes;     // what is not compared, as clauses: no inputs
};
// A hash of 32 hex digits.
std::string content_hash(const StepInputs& inputs);
// A digest for each part by its name ("command 2", "file input.txt", "parent build"). Comparing two
// maps shows which part changed.
std::map<std::string, std::string> parts_of(const StepInputs& inputs);

// Digests of files. A file is read again only when its size, times or inode changed. A file over 64
// MiB is never read; its size, times and inode stand in for its content. They change with every
// write and with every copy.
class FileDigests {
 public:
  Status of(const std::string& path, std::string* digest);

 private:
  struct Known {
    std::string seal, digest;
  };
  std::map<std::string, Known> known_;
};

// The environment changes that a step's exported parameters and its own keys make for its commands,
// in this order. `before`: the environment without them, to which the variables of `env` refer.
EnvironmentChanges declared_environment(const Step& step, const WorkpackageValues& values,
                                        const Environment& before);

// The "NAME=value" entries among which the secrets of a workpackage are: this environment and its
// parameters.
std::vector<std::string> with_secrets(const WorkpackageValues& values,
                                      const Environment& environment);

// A workpackage before its first command, as setup_inputs() needs it.
struct SetupContext {
  const Benchmark& benchmark;
  const Step& step;
  const WorkpackageValues& values;
  Evaluator& evaluator;
  std::string work_dir;  // absolute; need not exist
  std::string shell;
  // Changes for the step's commands, relative to the engine's environment.
  const EnvironmentChanges& changes;
  const Environment& environment;  // the complete environment of the step's commands
};

// Collects all inputs except the parents. Files count by content: those of the step's file sets,
// those of `input`, and every file that a command, a substitution or an exported parameter names by
// its path. Files in the work directory are left out, because file sets and parents account for
// them. Files that a command writes to are left out too. An error names the file that cannot be
// read.
Status setup_inputs(const SetupContext& context, FileDigests& digests, StepInputs* inputs);

}  // namespace tally
