// The range of one operation in a profiler's timeline. A device's profiler brings the calls: NVTX
// (nvtx.cc), which calls nothing unless a profiler (nsys, ncu, compute-sanitizer) has asked for it
// when it started the program. Then a range costs a test of two pointers. A replayed CUDA graph
// shows its kernels without ranges: profile with --no-cuda-graph to see them.
#pragma once

namespace tally::train {

struct RangeCalls {
  void (*begin)(const char* name) = nullptr;
  void (*end)() = nullptr;
};
inline RangeCalls range_calls;

class OpRange {
 public:
  explicit OpRange(const char* name) {
    if (range_calls.begin) range_calls.begin(name);
  }
  ~OpRange() {
    if (range_calls.end) range_calls.end();
  }
  OpRange(const OpRange&) = delete;
  OpRange& operator=(const OpRange&) = delete;
};

}  // namespace tally::train
