#include "engine/workflow/workflow.h"

namespace tally {

const Step* Benchmark::find_step(const std::string& step) const {
  for (const Step& candidate : steps) {
    if (candidate.name.value == step) return &candidate;
  }
  return nullptr;
}

}  // namespace tally
