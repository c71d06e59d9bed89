// The files that commands of the short form name.
#pragma once

#include <set>
#include <string>

#include "engine/base/diagnostics.h"
#include "engine/read/yaml_nodes.h"

namespace tally {

// Adds what the words of a command name in `directory`: of each file its name, or the folder there
// under which it lies. A parameter in a word stands for any text. Names that a file set would read
// otherwise are left out.
void add_names_beside(const std::string& command, const std::string& directory,
                      std::set<std::string>* names);

// Warns of a command's program that is not where the command looks for it: not beside the workflow,
// not in PATH, or one of the names that the build's commands have and make.
void warn_of_program(const YamlNode& command, const std::set<std::string>& build_names,
                     const std::string& directory, Diagnostics& diagnostics);

}  // namespace tally
