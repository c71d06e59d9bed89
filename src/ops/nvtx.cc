// Operations as ranges of NVTX, in every build with CUDA, on whatever device they run.
#include <nvtx3/nvToolsExt.h>

#include "src/ops/op_range.h"

namespace tally::train {
namespace {

void begin(const char* name) {
  nvtxRangePushA(name);
}
void end() {
  nvtxRangePop();
}

// Runs before main(), so that no range ends that has not begun.
const bool connected = [] {
  range_calls = {begin, end};
  return true;
}();

}  // namespace
}  // namespace tally::train
