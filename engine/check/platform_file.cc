#include "engine/check/platform_file.h"

#include <fmt/format.h>

#include <vector>

#include "engine/base/text.h"

namespace tally {

std::string platforms_of(const Element& parent) {
  std::vector<std::string> platforms;
  for (const Element& child : parent.children) {
    if (child.name == "step") return {};
    if (child.name == "platform") {
      platforms.push_back(
          fmt::format("{} ({})", child.get("name"), child.get("scheduler", "slurm")));
    }
    if (child.name != "benchmark") continue;
    std::string inner = platforms_of(child);
    if (inner.empty()) return {};
    platforms.push_back(std::move(inner));
  }
  return join(platforms, ", ");
}

bool describes_platform(const Element& root) {
  return !platforms_of(root).empty();
}

std::string job_on(const std::string& platform) {
  std::string quoted;
  for (const char c : platform) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return fmt::format(
      "name: platform\nstep: {{name: job, kind: run, platform: \"{}\", resources: {{nodes: 1}}, "
      "launch: \"true\"}}\n",
      quoted);
}

}  // namespace tally
