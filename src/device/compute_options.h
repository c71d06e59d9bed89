// Options of operations. They are passed as a value with the stream, so that a Stream is only a
// queue, and work on a side stream may use other options than the work that it overlaps with.
#pragma once

#include "src/device/policy.h"
#include "src/device/stream.h"

namespace tally::train {

// The run's policy, and what differs within a run.
struct ComputeOptions : Policy {
  // Reserved SMs: SMs that GEMMs leave to a side stream; 0: none. 16-bit GEMMs and those on float64
  // tensor cores obey it. Attention does not.
  int reserved_sms = 0;
  // The number of tokens differs from call to call: what is tuned for one number serves others that
  // are nearly the same, instead of being tuned anew.
  bool tokens_vary = false;
};

// The stream and the options with which an operation runs. The stream outlives it. A Stream&
// converts to it with default options, and it converts to the Stream& that operations without
// options take.
struct Compute {
  Compute(Stream& s, const ComputeOptions& o = {}) : stream(s), options(o) {}
  operator Stream&() const { return stream; }

  Stream& stream;
  ComputeOptions options;
};

}  // namespace tally::train
