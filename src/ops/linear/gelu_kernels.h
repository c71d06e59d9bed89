// The CUTLASS kernels for GEMMs with GELU: of its erf form those that save its derivative alone,
// and in f16 only these.
#pragma once

#include "src/ops/gemm/fused.h"
#include "src/ops/linear/linear.h"

namespace tally::train::cuda {

KernelList<FusedKernel> gelu_forward_kernels(DType type, ActivationForm form);
KernelList<FusedKernel> gelu_backward_kernels(DType type, ActivationForm form);

}  // namespace tally::train::cuda
