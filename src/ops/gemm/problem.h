// Row-major tensors as GEMM problems, and the names under which choices for them are remembered:
// what the operations above gemm.h share.
#pragma once

#include <string>
#include <vector>

#include "src/ops/gemm/fused.h"
#include "src/ops/gemm/gemm.h"

namespace tally::train::cuda {

// out = x op(w), x[M,K] flattened to two dimensions.
GemmProblem gemm_problem(const In& x, const In& w, bool w_transposed, const Out& out);
// Adds an epilogue, with b[N] where it is defined, and `aux` as Epilogue says.
GemmProblem with_epilogue(GemmProblem p, Epilogue epilogue, const In& b, void* aux);
// The key under which the choice for `op` at this shape is remembered.
std::string shape_key(const char* op, const CudaCompute& c, const GemmProblem& p);

// The GEMM of `plain` with bias `b`, without source and aux.
FusedGemm fused_gemm(const GemmProblem& plain, const In& b, const Out& out);
// The kernels that serve this problem here; none unless `wanted`.
std::vector<const FusedKernel*> serving(const CudaStream& s, bool wanted,
                                        const KernelList<FusedKernel>& kernels, const FusedGemm& p);

}  // namespace tally::train::cuda
