// The range of one operation in a profiler's timeline, by NVTX. NVTX calls nothing unless a profiler
// (nsys, ncu, compute-sanitizer) has asked for it when it started the program: then a range costs a
// test of one pointer. A replayed CUDA graph shows its kernels without ranges: profile with
// --no-cuda-graph to see them.
#pragma once

#ifdef TALLY_WITH_CUDA
#include <nvtx3/nvToolsExt.h>
#endif

namespace tally::train {

class OpRange {
 public:
#ifdef TALLY_WITH_CUDA
  explicit OpRange(const char* name) {
    nvtxRangePushA(name);
  }
  ~OpRange() {
    nvtxRangePop();
  }
#else
  explicit OpRange(const char* /*name*/) {}
  ~OpRange() = default;
#endif
  OpRange(const OpRange&) = delete;
  OpRange& operator=(const OpRange&) = delete;
};

}  // namespace tally::train
