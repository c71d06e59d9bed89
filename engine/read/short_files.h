// The files that commands of the short form name.
#pragma once

#include <set>
#include <string>

namespace tally {

// Adds what the words of a command name in `directory`: of each file its name, or the folder there
// under which it lies. A parameter in a word stands for any text. Names that a file set would read
// otherwise are left out.
void add_names_beside(const std::string& command, const std::string& directory,
                      std::set<std::string>* names);

}  // namespace tally
