#include "src/ops/gemm/gemm.h"

#include <fmt/format.h>

#include "src/device/cuda/check.h"
#include "src/ops/gemm/float64.h"
#include "src/ops/gemm/plan.h"

namespace tally::train::cuda {

bool gemm_supported(const CudaCompute& c, const GemmProblem& problem) {
  GemmPlans& plans = gemm_plans(c.stream);
  if (must_split(c.options, problem)) {
    const SplitProblem split = split_problem(c.stream, problem);
    return plans.plan(c, split.small) && plans.plan(c, split.large);
  }
  return plans.plan(c, problem) != nullptr;
}

void gemm(const CudaCompute& c, const GemmProblem& p) {
  CudaStream& s = c.stream;
  if (p.rows == 0 || p.cols == 0 || p.batch == 0) return;
  if (must_split(c.options, p)) {
    const SplitProblem split = split_problem(s, p);
    gemm(c, split.small);
    return gemm(c, split.large);
  }
  const GemmPlans::Plan* plan = gemm_plans(s).plan(c, p);
  if (!plan) {
    throw DeviceError(fmt::format("GEMM {} x {} x {} ({} to {}): cuBLASLt has no algorithm", p.rows,
                                  p.cols, p.inner, dtype_name(p.a.dtype), dtype_name(p.out_dtype)));
  }
  if (plan->float64_tile >= 0) {
    void* parts = s.gemm_workspace(float64_parts_bytes(s.sms()));
    CUDA_CHECK(run_float64(c, p, plan->float64_tile, p.out, parts));
    return;
  }
  plan->point(p);
  void* workspace = s.gemm_workspace(plan->workspace);
  CUBLAS_CHECK(plan->run(s, p, p.out, plan->algorithm, workspace, plan->workspace));
}

}  // namespace tally::train::cuda
