// What the GEMMs of layers share: converting tensors to GEMM problems, and which kernels serve
// them.
#pragma once

#include <string>
#include <vector>

#include "src/device/tensor.h"
#include "src/ops/gemm/fused.h"
#include "src/ops/gemm/gemm.h"

namespace tally::train::cuda {

// out = x op(w), x[M,K] flattened to two dimensions.
GemmProblem gemm_problem(const Tensor& x, const Tensor& w, bool w_transposed, const Tensor& out);
// Adds an epilogue, with b[N] where it is defined, and `aux` as Epilogue says.
GemmProblem with_epilogue(GemmProblem p, Epilogue epilogue, const Tensor& b, void* aux);
// The key under which the choice for `op` at this shape is remembered.
std::string shape_key(const char* op, const CudaCompute& c, const GemmProblem& p);
// The same GEMM with bias `b`, for CUTLASS's kernels.
FusedGemm fused_gemm(const GemmProblem& plain, const Tensor& b, void* pre, const Tensor& out);
// The CUTLASS kernels that serve this problem here; none unless `wanted`.
std::vector<const FusedKernel*> serving(const CudaStream& s, bool wanted,
                                        const FusedKernels& kernels, const FusedGemm& p);

}  // namespace tally::train::cuda
