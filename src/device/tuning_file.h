// Where it is kept which algorithms are the fastest on a device.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

namespace tally::train {

// Value of an environment variable, or null.
using Environment = std::function<const char*(const char* name)>;

// The file for a device and a version of the library whose algorithms are timed: what
// TALLY_TUNING_CACHE names ("off": none), otherwise tuning-3-<device>-<version>.txt in
// TALLY_CACHE_DIR, which job scripts set, in $XDG_CACHE_HOME/tally or in ~/.cache/tally. "": no
// file. The number stands for how algorithms are timed; a file that is named is taken as it is.
// Variables that are empty count as not set.
std::string tuning_file(const std::string& device, size_t version, const Environment& get);

}  // namespace tally::train
