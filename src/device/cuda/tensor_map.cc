#include "src/device/cuda/tensor_map.h"

#include <cuda_runtime_api.h>

namespace tally::train::cuda {

TensorMapEncode tensor_map_encode() {
  static const auto found = [] {
    void* function = nullptr;
    cudaDriverEntryPointQueryResult result{};
    constexpr unsigned since = 12000;  // the CUDA version that brought it
    if (cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, since,
                                         cudaEnableDefault, &result) != cudaSuccess ||
        result != cudaDriverEntryPointSuccess)
      return TensorMapEncode{};
    return reinterpret_cast<TensorMapEncode>(function);
  }();
  return found;
}

}  // namespace tally::train::cuda
