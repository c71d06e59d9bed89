#include "src/device/cuda/device_code.h"

#include <cuda_runtime.h>

namespace tally::train::cuda {
namespace {

__global__ void probe_kernel() {}

}  // namespace

bool has_device_code() {
  cudaFuncAttributes attributes;
  const cudaError_t error = cudaFuncGetAttributes(&attributes, probe_kernel);
  if (error != cudaSuccess) cudaGetLastError();
  return error == cudaSuccess;
}

}  // namespace tally::train::cuda
