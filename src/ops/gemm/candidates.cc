// Chooses which of cuBLASLt's algorithms are timed for a GEMM.
#include <cstring>

#include "src/device/cuda/check.h"
#include "src/ops/gemm/tuned_gemm.h"

namespace tally::train::cuda {
namespace {

// The library's algorithms, best first by its own estimate.
Algorithms offered(CudaStream& s, const GemmProblem& p, const TunedGemms::Gemm& gemm, int wanted) {
  cublasLtMatmulPreference_t preference = nullptr;
  CUBLAS_CHECK(cublasLtMatmulPreferenceCreate(&preference));
  const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t what, const auto& value) {
    CUBLAS_CHECK(cublasLtMatmulPreferenceSetAttribute(preference, what, &value, sizeof value));
  };
  prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, s.tuning().workspace_bytes());
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
         alignment_of(p.b.data, p.b.dtype, p.b.leading, p.b.stride));
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
         alignment_of(p.a.data, p.a.dtype, p.a.leading, p.a.stride));
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, out_alignment(p));
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, out_alignment(p));
  Algorithms found(static_cast<size_t>(wanted));
  int count = 0;
  const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
      s.blas(), gemm.desc, gemm.first.get(), gemm.second.get(), gemm.result.get(),
      gemm.result.get(), preference, wanted, found.data(), &count);
  cublasLtMatmulPreferenceDestroy(preference);
  Algorithms algorithms;
  if (status != CUBLAS_STATUS_SUCCESS) return algorithms;
  for (int i = 0; i < count; ++i) {
    const auto& f = found[static_cast<size_t>(i)];
    if (f.state == CUBLAS_STATUS_SUCCESS) algorithms.push_back(f);
  }
  return algorithms;
}

}  // namespace

bool runs_in_pairs(const cublasLtMatmulAlgo_t& algorithm) {
  uint16_t cluster = CUBLASLT_CLUSTER_SHAPE_AUTO;
  size_t written = 0;
  if (cublasLtMatmulAlgoConfigGetAttribute(&algorithm, CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID,
                                           &cluster, sizeof cluster,
                                           &written) != CUBLAS_STATUS_SUCCESS) {
    return true;  // a kernel without clusters
  }
  return cluster == CUBLASLT_CLUSTER_SHAPE_AUTO || cluster == CUBLASLT_CLUSTER_SHAPE_1x1x1 ||
         cluster == CUBLASLT_CLUSTER_SHAPE_2x1x1 || cluster == CUBLASLT_CLUSTER_SHAPE_1x2x1;
}

Algorithms candidates(const CudaCompute& c, const GemmProblem& p, const TunedGemms::Gemm& gemm,
                      int wanted) {
  CudaStream& s = c.stream;
  Algorithms all = offered(s, p, gemm, wanted);
  if (c.options.reserved_sms == 0) return all;
  Algorithms pairs;
  const auto take = [&](const Algorithms& from) {
    for (const auto& a : from) {
      bool known = !runs_in_pairs(a.algo);
      for (const auto& b : pairs) known |= std::memcmp(&a.algo, &b.algo, sizeof a.algo) == 0;
      if (!known) pairs.push_back(a);
    }
  };
  take(all);
  // The library offers mostly large clusters for fewer SMs.
  gemm.use_sms(0);
  take(offered(s, p, gemm, wanted));
  gemm.use_sms(c.sms_for_gemms());
  if (pairs.empty()) return all;
  return pairs;
}

}  // namespace tally::train::cuda
