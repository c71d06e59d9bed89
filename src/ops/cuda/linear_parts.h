// What the products of layers have in common: from tensors to problems, and which kernels serve
// them. For linear*.cc only.
#pragma once

#include <string>
#include <vector>

#include "src/ops/cuda/gemm.h"
#include "src/ops/cuda/gemm_cutlass.h"
#include "src/ops/tensor.h"

namespace tally::train::cuda {

// out = x op(w), x[M,K] flattened to two dimensions.
MatMul product(const Tensor& x, const Tensor& w, bool w_transposed, const Tensor& out);
// With b[N] where it is defined, and `aux` as Epilogue says.
MatMul with_epilogue(MatMul p, Epilogue epilogue, const Tensor& b, void* aux);
// Under which it is remembered how `op` is done at this shape.
std::string shape_key(const char* op, CudaStream& s, const MatMul& p);
// The same product with bias `b`, for CUTLASS's kernels.
FusedProduct fused_product(const MatMul& plain, const Tensor& b, void* pre, const Tensor& out);
// Those of CUTLASS's kernels that serve this problem here, none unless `wanted`.
std::vector<const FusedKernel*> serving(const CudaStream& s, bool wanted,
                                        const FusedKernels& kernels, const FusedProduct& p,
                                        DType type);

}  // namespace tally::train::cuda
