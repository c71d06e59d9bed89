#include "src/device/cuda/check.h"

#include <fmt/format.h>

#include <cstring>

#include "src/device/errors.h"

namespace tally::train::cuda {
namespace {

const char* base_name(const char* path) {
  const char* slash = std::strrchr(path, '/');
  return slash ? slash + 1 : path;
}

}  // namespace

void throw_cuda(cudaError_t error, const char* op, const char* file, int line) {
  throw DeviceError(fmt::format("{}:{}: {}: {} ({})", base_name(file), line, op,
                                cudaGetErrorString(error), cudaGetErrorName(error)));
}

void throw_cublas(cublasStatus_t status, const char* op, const char* file, int line) {
  throw DeviceError(fmt::format("{}:{}: {}: cuBLASLt: {}", base_name(file), line, op,
                                cublasLtGetStatusString(status)));
}

}  // namespace tally::train::cuda
