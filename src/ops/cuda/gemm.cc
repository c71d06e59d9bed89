#include "src/ops/cuda/gemm.h"

#include <fmt/format.h>

#include "src/ops/cuda/check.h"
#include "src/ops/cuda/gemm_float64.h"
#include "src/ops/cuda/gemm_plan.h"

namespace tally::train::cuda {

bool matmul_supported(CudaStream& s, const MatMul& problem) {
  if (must_split(s, problem)) {
    const SplitProblem split = split_problem(s, problem);
    return s.gemms().plan(s, split.small) && s.gemms().plan(s, split.large);
  }
  return s.gemms().plan(s, problem) != nullptr;
}

void matmul(CudaStream& s, const MatMul& p) {
  if (p.rows == 0 || p.cols == 0 || p.batch == 0) return;
  if (must_split(s, p)) {
    const SplitProblem split = split_problem(s, p);
    matmul(s, split.small);
    return matmul(s, split.large);
  }
  const GemmPlans::Plan* plan = s.gemms().plan(s, p);
  if (!plan) {
    throw DeviceError(
        fmt::format("matrix product {} x {} x {} ({} to {}): cuBLASLt has no algorithm", p.rows,
                    p.cols, p.inner, dtype_name(p.a.dtype), dtype_name(p.out_dtype)));
  }
  if (plan->float64_tile >= 0) {
    void* parts = s.product_workspace(float64_parts_bytes(s.multiprocessors()));
    CUDA_CHECK(run_float64(s, p, plan->float64_tile, p.out, parts));
    return;
  }
  plan->point(p);
  void* workspace = s.product_workspace(plan->workspace);
  CUBLAS_CHECK(plan->run(s, p, p.out, plan->algorithm, workspace, plan->workspace));
}

}  // namespace tally::train::cuda
