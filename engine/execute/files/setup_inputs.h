// What the result of a setup or build step depends on. Equal inputs mean that one run of the step
// serves all. The dry run and the run ask the same function.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "engine/base/status.h"
#include "engine/execute/environment.h"
#include "engine/workflow/workflow.h"
#include "engine/workpackage/values.h"

namespace tally {

struct StepInputs {
  std::string step;
  std::vector<std::string> commands;  // after substitution, file sets' entries included
  NamedValues parents;                // step, and what names the work that it left
  NamedValues environment;            // variables that the step sets or names, compilers' flags
  NamedValues files;                  // target in the work directory or path, and a digest
};
// Thirty-two hex digits.
std::string content_hash(const StepInputs& inputs);
// Each part by its name ("command 2", "file input.txt", "parent build") with a digest of its own,
// to tell which one changed.
std::map<std::string, std::string> parts_of(const StepInputs& inputs);

// Digests of files, each read once as long as its size, times and inode stay the same. A file over
// 64 MiB is known by these alone: they change with every write, and with every copy.
class FileDigests {
 public:
  Status of(const std::string& path, std::string* digest);

 private:
  struct Known {
    std::string seal, digest;
  };
  std::map<std::string, Known> known_;
};

// What a step's own keys and its exported parameters put into the environment of its commands.
EnvironmentChanges declared_environment(const Step& step, const WorkpackageValues& values);

// A workpackage before its first command.
struct SetupContext {
  const Benchmark& benchmark;
  const Step& step;
  const WorkpackageValues& values;
  Evaluator& evaluator;
  std::string work_dir;  // absolute; need not exist
  std::string shell;
  const EnvironmentChanges& changes;  // what the step's commands get besides the engine's own
  const Environment& environment;     // all that they get
};

// Everything but the parents. By content: the files of its file sets and of `input`, and every file
// that a command, a substitution or an exported parameter names by its path, but for those in the
// work directory itself (file sets and parents account for them) and those that a command writes
// to. An error says which file cannot be read.
Status setup_inputs(const SetupContext& context, FileDigests& digests, StepInputs* inputs);

}  // namespace tally
