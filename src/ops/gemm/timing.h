// Autotune on a stream: times equivalent computations.
#pragma once

#include <functional>
#include <vector>

#include "src/device/cuda/cuda_stream.h"

namespace tally::train::cuda {

// One algorithm for a GEMM: enqueues it; false when it does not run.
using Candidate = std::function<bool()>;

// The index of the best candidate by autotune(); candidates.size() when none runs.
size_t best_of(CudaStream& s, const std::vector<Candidate>& candidates);

}  // namespace tally::train::cuda
