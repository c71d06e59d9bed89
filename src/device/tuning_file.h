// The file that keeps which algorithms are the fastest on a device.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

namespace tally::train {

// Value of an environment variable, or null.
using Environment = std::function<const char*(const char* name)>;

// The file for a device and a version of the library whose algorithms are timed: the one that
// TALLY_TUNING_CACHE names ("off": none), else tuning-3-<device>-<version>.txt in TALLY_CACHE_DIR,
// which job scripts set, in $XDG_CACHE_HOME/tally or in ~/.cache/tally. "": no file. The number
// stands for the method of timing; a file named by the variable is used as it is. Empty variables
// count as not set.
std::string tuning_file(const std::string& device, size_t version, const Environment& get);

}  // namespace tally::train
