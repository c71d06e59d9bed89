#include "src/ops/operation.h"

namespace tally::train {

// The table is in a function because files register in any order before main().
std::map<std::string, std::set<DeviceKind>>& registered_versions() {
  static std::map<std::string, std::set<DeviceKind>> all;
  return all;
}

void no_version(const char* operation, DeviceKind kind) {
  throw DeviceError(std::string(operation) + " has no version for " +
                    (kind == DeviceKind::cpu    ? "the CPU"
                     : kind == DeviceKind::cuda ? "GPUs: this build has no CUDA"
                                                : "counting"));
}

}  // namespace tally::train
