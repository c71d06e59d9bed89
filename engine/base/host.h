// Identifies this machine among those that share a file system.
#pragma once

#include <string>

namespace tally {

// $TALLY_HOST, or else the host's name. The variable is for machines whose names are not unique,
// such as containers that are all called localhost.
std::string host_identity();

// A name in the same folder as `path` that no other process on any host uses. It is for a file that
// is written first and then renamed to `path`.
std::string name_beside(const std::string& path);

}  // namespace tally
