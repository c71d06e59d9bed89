// Errors of the CUDA runtime and its libraries as exceptions that say which operation failed and
// where.
#pragma once

#include <cublasLt.h>
#include <cuda_runtime_api.h>

namespace tally::train::cuda {

// Throw DeviceError: "norm.cu:57: layernorm_forward: an illegal memory access was encountered
// (...)".
[[noreturn]] void throw_cuda(cudaError_t error, const char* op, const char* file, int line);
[[noreturn]] void throw_cublas(cublasStatus_t status, const char* op, const char* file, int line);

inline void check_cuda(cudaError_t error, const char* op, const char* file, int line) {
  if (error != cudaSuccess) throw_cuda(error, op, file, line);
}
inline void check_cublas(cublasStatus_t status, const char* op, const char* file, int line) {
  if (status != CUBLAS_STATUS_SUCCESS) throw_cublas(status, op, file, line);
}

}  // namespace tally::train::cuda

#define CUDA_CHECK(call) ::tally::train::cuda::check_cuda((call), __func__, __FILE__, __LINE__)
#define CUBLAS_CHECK(call) ::tally::train::cuda::check_cublas((call), __func__, __FILE__, __LINE__)
// Reports a kernel launch that could not start. A fault inside the kernel is reported at the next
// synchronisation.
#define CUDA_LAUNCHED() CUDA_CHECK(cudaGetLastError())
