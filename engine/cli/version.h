// Tally's version, from the project's CMakeLists.txt.
#pragma once

#ifndef TALLY_VERSION
#define TALLY_VERSION "unknown"
#endif

namespace tally {

constexpr const char* kVersion = TALLY_VERSION;

}  // namespace tally
