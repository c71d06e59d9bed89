#include "src/ops/fp8/gemm.h"

#include <cstdint>

#include "src/device/errors.h"
#include "src/ops/gemm/problem.h"
#include "src/ops/linear/passes.h"

namespace tally::train::cuda {
namespace {

// cuBLASLt says "not supported" of a scale at another address.
const float* scales_of(const Fp8Matrix& m) {
  if (reinterpret_cast<uintptr_t>(m.scales.data) % fp8_multiple != 0)
    throw DeviceError("fp8_gemm: a scale is not at a multiple of 16 bytes");
  return m.scales.as<float>();
}

}  // namespace

void multiply_fp8(const Compute& compute, Fp8Matrix a, Fp8Matrix b, Out out, Fp8Sum sum) {
  const CudaCompute c = cuda_compute(compute);
  GemmProblem p = gemm_problem(a.data, b.data, true, out);
  p.a.scales = scales_of(a);
  p.b.scales = scales_of(b);
  p.a.scaling = a.scaling;
  p.b.scaling = b.scaling;
  p.fast_sums = sum.fast;
  if (sum.addend.defined()) {
    p.beta = 1;
    p.addend = sum.addend.data;
  }
  if (!sum.bias.defined()) return gemm(c, p);
  const GemmProblem fused = with_epilogue(p, Epilogue::bias, sum.bias, nullptr);
  if (gemm_supported(c, fused)) return gemm(c, fused);
  gemm(c, p);
  add_bias(c.stream, sum.bias, out);
}

}  // namespace tally::train::cuda
