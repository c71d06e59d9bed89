#include "engine/base/system_files.h"

#include <fstream>

#include "engine/base/presence.h"

namespace tally {

bool read_number(const std::string& path, double* value) {
  std::ifstream in(path);
  return static_cast<bool>(in >> *value);
}

std::vector<std::string> paths_matching(const std::string& pattern) {
  std::vector<std::string> paths;
  [[maybe_unused]] const Status found = matching_paths(pattern, &paths);
  return paths;
}

}  // namespace tally
