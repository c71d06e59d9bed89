// Small files of the kernel, as below /sys and /proc.
#pragma once

#include <string>
#include <vector>

namespace tally {

// The number with which a file begins. False: there is no such file, or it begins otherwise.
bool read_number(const std::string& path, double* value);
// The files that a shell's pattern matches, in the order of their names.
std::vector<std::string> paths_matching(const std::string& pattern);

}  // namespace tally
