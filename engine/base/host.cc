#include "engine/base/host.h"

#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdlib>

namespace tally {

std::string host_identity() {
  if (const char* given = std::getenv("TALLY_HOST"); given != nullptr && *given != '\0') {
    return given;
  }
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "unknown";
  return name.data();
}

std::string name_beside(const std::string& path) {
  static std::atomic<unsigned> count{0};
  return path + ".new." + host_identity() + "." + std::to_string(getpid()) + "." +
         std::to_string(count++);
}

}  // namespace tally
