// Which machine this is, among those that share a file system.
#pragma once

#include <string>

namespace tally {

// $TALLY_HOST, or the host's name. The variable is for machines whose names say nothing, as
// containers that are all called localhost.
std::string host_identity();

// A name beside `path` that no other process on any host uses: for a file that is written there and
// then renamed to `path`.
std::string name_beside(const std::string& path);

}  // namespace tally
