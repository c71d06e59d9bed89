// The GPUs of this machine and their properties.
#include <cublasLt.h>
#include <fmt/format.h>

#include <array>

#include "src/device/cuda/check.h"
#include "src/device/cuda/gpu.h"

namespace tally::train::cuda {
namespace {

std::string version(int v) {
  return fmt::format("{}.{}", v / 1000, v % 1000 / 10);
}

}  // namespace

int device_count() {
  int n = 0;
  if (cudaGetDeviceCount(&n) != cudaSuccess) {
    cudaGetLastError();  // the error is sticky in the runtime's last-error slot only
    return 0;
  }
  return n;
}

std::string unavailable_reason() {
  int n = 0;
  const cudaError_t error = cudaGetDeviceCount(&n);
  if (error == cudaSuccess) return n > 0 ? "" : "no CUDA device is visible";
  cudaGetLastError();
  int driver = 0;
  if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0) {
    return "no NVIDIA driver is loaded on this machine";
  }
  if (error == cudaErrorInsufficientDriver) {
    int runtime = 0;
    cudaRuntimeGetVersion(&runtime);
    return fmt::format(
        "the NVIDIA driver serves CUDA {} and this build needs CUDA {}: update the driver",
        version(driver), version(runtime));
  }
  return fmt::format("CUDA reports: {}", cudaGetErrorString(error));
}

DeviceInfo device_info(int index) {
  cudaDeviceProp p;
  CUDA_CHECK(cudaGetDeviceProperties(&p, index));
  int driver = 0, runtime = 0;
  CUDA_CHECK(cudaDriverGetVersion(&driver));
  CUDA_CHECK(cudaRuntimeGetVersion(&runtime));
  DeviceInfo info;
  info.name = p.name;
  info.capability = p.major * 10 + p.minor;
  info.total_bytes = p.totalGlobalMem;
  info.sms = p.multiProcessorCount;
  info.driver = "CUDA " + version(driver);
  info.runtime = fmt::format("CUDA {}, cuBLASLt {}", version(runtime), cublasLtGetVersion());
  return info;
}

std::string pci_address(int index) {
  std::array<char, 32> text{};
  if (cudaDeviceGetPCIBusId(text.data(), static_cast<int>(text.size()), index) != cudaSuccess) {
    cudaGetLastError();
    return "";
  }
  return text.data();
}

}  // namespace tally::train::cuda
