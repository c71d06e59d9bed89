// Errors of the CUDA runtime, in the module that holds NCCL.
#pragma once

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include "src/device/errors.h"

namespace tally::train {

inline void check(cudaError_t status, const char* op) {
  if (status != cudaSuccess)
    throw DeviceError(fmt::format("NCCL's stream: {}: {}", op, cudaGetErrorString(status)));
}

}  // namespace tally::train
