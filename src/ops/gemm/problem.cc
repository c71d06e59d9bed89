#include "src/ops/gemm/problem.h"

#include <fmt/format.h>

namespace tally::train::cuda {
namespace {

// A weight of so many bytes stays in L2 while all SMs read it: half of the 50 MB of an H100's L2,
// each half of which serves half of the SMs.
constexpr int64_t cached_bytes = int64_t{24} << 20;

}  // namespace

GemmProblem gemm_problem(const In& x, const In& w, bool w_transposed, const Out& out) {
  GemmProblem p;
  p.inner = x.dim(-1);
  p.rows = p.inner ? x.numel() / p.inner : 0;
  p.cols = w_transposed ? w.dim(0) : w.dim(1);
  p.a = {x.data, x.dtype, p.inner, 0, false};
  p.b = {w.data, w.dtype, w.dim(1), 0, w_transposed};
  p.out = out.data;
  p.out_dtype = out.dtype;
  p.out_leading = p.cols;
  return p;
}

std::string shape_key(const char* op, const CudaCompute& c, const GemmProblem& p) {
  return fmt::format("{}/{}x{}x{}/{}{}{}", op, tuned_size(c.options, p.rows), p.cols,
                     tuned_size(c.options, p.inner), dtype_name(p.out_dtype),
                     c.options.matmul_mode == MatmulMode::tf32           ? "t"
                     : c.options.matmul_mode == MatmulMode::tf32x3       ? "3"
                     : p.a.dtype == DType::f32 && float64_gemms_serve(c) ? "d"
                                                                         : "",
                     c.options.reserved_sms > 0 ? fmt::format("l{}/", c.options.reserved_sms) : "");
}

GemmProblem with_epilogue(GemmProblem p, Epilogue epilogue, const In& b, void* aux) {
  p.epilogue = epilogue;
  p.bias = b.data;
  p.aux = aux;
  return p;
}

FusedGemm fused_gemm(const GemmProblem& plain, const In& b, const Out& out) {
  FusedGemm p;
  p.tokens = plain.rows;
  p.features = plain.cols;
  p.inner = plain.inner;
  p.x = plain.a.data;
  p.weight = plain.b.data;
  p.bias = b.data;
  p.out = out.data;
  p.swizzle =
      p.features * p.inner * static_cast<int64_t>(size_of(out.dtype)) > cached_bytes ? 8 : 1;
  return p;
}

std::vector<const FusedKernel*> serving(const CudaStream& s, bool wanted,
                                        const KernelList<FusedKernel>& kernels,
                                        const FusedGemm& p) {
  std::vector<const FusedKernel*> found;
  const auto bits = reinterpret_cast<uintptr_t>(p.x) | reinterpret_cast<uintptr_t>(p.weight) |
                    reinterpret_cast<uintptr_t>(p.source) | reinterpret_cast<uintptr_t>(p.aux) |
                    reinterpret_cast<uintptr_t>(p.out) | reinterpret_cast<uintptr_t>(p.bias);
  if (!wanted || s.capability() != 90 || bits % 16 != 0) return found;
  for (const FusedKernel& kernel : kernels) {
    if (kernel.supported(p)) found.push_back(&kernel);
  }
  return found;
}

}  // namespace tally::train::cuda
