#include "src/measure/control_groups.h"

#include <fstream>
#include <sstream>

namespace tally::train {
namespace {

namespace fs = std::filesystem;

bool lists(const std::string& controllers, const std::string& controller) {
  std::istringstream in(controllers);
  for (std::string one; std::getline(in, one, ',');)
    if (one == controller) return true;
  return false;
}

}  // namespace

std::vector<fs::path> control_groups(const std::string& root, const std::string& controller) {
  std::vector<fs::path> folders;
  // Lines as "0::/user/job" (version 2) and "5:memory:/user/job" (version 1).
  std::ifstream in(fs::path(root) / "proc/self/cgroup");
  for (std::string line; std::getline(in, line);) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    if (!controllers.empty() && !lists(controllers, controller)) continue;
    fs::path mount = fs::path(root) / "sys/fs/cgroup";
    if (!controllers.empty()) mount /= controller;
    folders.push_back(mount);  // a container sees its own group here
    const fs::path group = fs::path(line.substr(second + 1)).relative_path();
    for (fs::path at = group; !at.empty(); at = at.parent_path()) folders.push_back(mount / at);
  }
  return folders;
}

size_t number_in(const fs::path& file) {
  std::ifstream in(file);
  size_t number = 0;
  return in >> number ? number : no_number;
}

}  // namespace tally::train
