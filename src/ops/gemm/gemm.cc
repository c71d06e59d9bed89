#include "src/ops/gemm/gemm.h"

#include <fmt/format.h>

#include "src/device/cuda/check.h"
#include "src/ops/gemm/float64.h"
#include "src/ops/gemm/tuned_gemm.h"

namespace tally::train::cuda {

bool gemm_supported(const CudaCompute& c, const GemmProblem& problem) {
  TunedGemms& gemms = tuned_gemms(c.stream);
  if (must_split(c.options, problem)) {
    const SplitProblem split = split_problem(c.stream, problem);
    return gemms.find(c, split.small) && gemms.find(c, split.large);
  }
  return gemms.find(c, problem) != nullptr;
}

void gemm(const CudaCompute& c, const GemmProblem& p) {
  CudaStream& s = c.stream;
  if (p.rows == 0 || p.cols == 0 || p.batch == 0) return;
  if (must_split(c.options, p)) {
    const SplitProblem split = split_problem(s, p);
    gemm(c, split.small);
    return gemm(c, split.large);
  }
  const TunedGemms::Gemm* tuned = tuned_gemms(s).find(c, p);
  if (!tuned) {
    throw DeviceError(fmt::format("GEMM {} x {} x {} ({} to {}): cuBLASLt has no algorithm", p.rows,
                                  p.cols, p.inner, dtype_name(p.a.dtype), dtype_name(p.out_dtype)));
  }
  if (tuned->float64_tile >= 0) {
    void* parts = s.gemm_workspace(float64_parts_bytes(s.sms()));
    CUDA_CHECK(run_float64(c, p, tuned->float64_tile, p.out, parts));
    return;
  }
  tuned->point(p);
  void* workspace = s.gemm_workspace(tuned->workspace);
  CUBLAS_CHECK(tuned->run(s, p, p.out, tuned->algorithm, workspace, tuned->workspace));
}

}  // namespace tally::train::cuda
