// The headers that all kernel files share: numbers, reductions, and what a launch needs to know.
#pragma once

#include <string>

#include "src/device/cuda/check.h"
#include "src/device/cuda/cuda_stream.h"
#include "src/device/cuda/reductions.cuh"
#include "src/device/cuda/vectors.cuh"
#include "src/device/errors.h"
#include "src/device/tensor.h"

namespace tally::train::cuda {

// Calls f with a value of the C++ type of `t`.
template <typename F>
void by_type(DType t, const char* op, F&& f) {
  switch (t) {
    case DType::f64:
      return f(double{});
    case DType::f32:
      return f(float{});
    case DType::bf16:
      return f(__nv_bfloat16{});
    case DType::f16:
      return f(__half{});
    default:
      throw DeviceError(std::string(op) + ": not a floating-point type: " + dtype_name(t));
  }
}

// Blocks of a kernel that are resident at the same time. A grid of this size has no partial last
// wave.
template <typename K>
int64_t resident_blocks(const CudaStream& s, K kernel, int threads, size_t shared_bytes = 0) {
  int blocks = 0;
  CUDA_CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, threads, shared_bytes));
  return static_cast<int64_t>(s.sms()) * (blocks > 0 ? blocks : 1);
}

inline int64_t divide_up(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

}  // namespace tally::train::cuda
