// Ways of doing the same, timed on a stream.
#pragma once

#include <functional>
#include <vector>

#include "src/ops/cuda/cuda_stream.h"

namespace tally::train::cuda {

// One way to compute a product: enqueues it; false when it does not run.
using Way = std::function<bool()>;

// The best of the ways by fastest_way(), ways.size() when none runs.
size_t best_of(CudaStream& s, const std::vector<Way>& ways);

}  // namespace tally::train::cuda
