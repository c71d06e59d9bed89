// The source and the tools that this program was built with.
#pragma once

#include <string>

namespace tally::train {

struct BuildInfo {
  std::string version;     // "0.3.0"
  std::string commit;      // short hash, "-dirty" behind it when files had changed, or "unknown"
  std::string compiler;    // "GNU 12.2.0"
  std::string build_type;  // "Release"
  std::string libtorch;    // "2.11.0+cu130"
  std::string cuda;        // the toolkit's; empty in a build without CUDA
};

BuildInfo build_info();
// The text of `--version`, several lines.
std::string version_text();

}  // namespace tally::train
