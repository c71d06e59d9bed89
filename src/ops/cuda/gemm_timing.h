// Ways of doing the same, timed on a stream.
#pragma once

#include <functional>
#include <vector>

#include "src/ops/cuda/cuda_stream.h"

namespace tally::train::cuda {

// One way to compute a product: enqueues it; false when it does not run.
using Way = std::function<bool()>;

// The best of the ways. Each is run once, which also loads its kernels and tunes what it is made
// of, then timed twice; the best of them take turns of some milliseconds. Those that come close to
// the best then, and take long enough to matter, take turns of a fifth of a second: a large GPU at
// its power limit lowers its clock, and of two kernels the one that wins a short burst may be the
// one that draws more and loses in a training step (bench/notes/gpu-step.md). ways.size() when none
// runs.
size_t best_of(CudaStream& s, const std::vector<Way>& ways);

}  // namespace tally::train::cuda
