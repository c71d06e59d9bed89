// Finding runs by a directory and ids, as JUBE's commands take them.
#pragma once

#include <string>
#include <vector>

#include "engine/cli/commands.h"
#include "engine/execute/files/run_directory.h"

namespace tally {

// The runs meant, ascending by id unless given in another order. Prints what is wrong and returns
// nothing when there is none.
std::vector<RunDirectory> find_runs(const Invocation& invocation, const RunsArgs& args);
// The folder of runs meant by `directory`; one run's own folder gives its parent, with *id set.
bool find_outpath(const Invocation& invocation, const std::string& directory, std::string* outpath,
                  int* id);
// "3" to 3; only numbers pass.
bool parse_id(const std::string& text, int* id);

}  // namespace tally
