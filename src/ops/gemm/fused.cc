#include "src/ops/gemm/fused.h"

#include <array>

namespace tally::train::cuda {

KernelList<FusedKernel>& fused_kernels(FusedWork work, DType type) {
  constexpr size_t works = static_cast<size_t>(FusedWork::times_derivative) + 1;
  constexpr size_t types = static_cast<size_t>(DType::e5m2) + 1;
  static std::array<std::array<KernelList<FusedKernel>, types>, works> lists;
  return lists[static_cast<size_t>(work)][static_cast<size_t>(type)];
}

}  // namespace tally::train::cuda
