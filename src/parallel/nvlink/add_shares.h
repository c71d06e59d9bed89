// The sum of one rank's share of a reduction by copy engines.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "src/device/tensor.h"

namespace tally::train {

struct Addends {
  DType type = DType::f32;
  const void* own = nullptr;  // this rank's
  // The other ranks', in their order without this one, `stride` elements apart: a multiple of 16
  // bytes, as `staged` is.
  const void* staged = nullptr;
  int64_t stride = 0;
  int rank = 0, ranks = 1;
  void* sum = nullptr;  // may be `own`
  int64_t count = 0;
};

// f32 and f64.
bool can_add_shares(DType type);
// Enqueues the sum, which is added in the order of the ranks. Returns the launch's error.
cudaError_t add_shares(cudaStream_t stream, const Addends& a);

}  // namespace tally::train
