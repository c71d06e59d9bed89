#include "engine/base/system_files.h"

#include <glob.h>

#include <fstream>

namespace tally {

bool read_number(const std::string& path, double* value) {
  std::ifstream in(path);
  return static_cast<bool>(in >> *value);
}

std::vector<std::string> paths_matching(const std::string& pattern) {
  std::vector<std::string> paths;
  glob_t found{};
  if (glob(pattern.c_str(), 0, nullptr, &found) == 0)
    paths.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  globfree(&found);
  return paths;
}

}  // namespace tally
