// GEMMs with epilogues that cuBLASLt lacks or is slow at: a bias; bias and residual; GELU; GELU's
// gradient. Built from CUTLASS for Hopper (sm_90a), several tile shapes each: fused_forward.cu and
// fused_backward.cu list them. The caller times them against the library's GEMM with a kernel of
// its own after it (problem.h says which serve).
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "src/device/tensor.h"
#include "src/ops/gemm/kernel_list.h"

namespace tally::train::cuda {

// The work of the epilogue: + bias; + bias + residual; GELU of + bias, whose input or derivative is
// stored too; times GELU's derivative, computed from its input or read.
enum class FusedWork : uint8_t {
  bias,
  bias_residual,
  gelu,
  gelu_derivative,
  erf_gelu_derivative,
  gelu_gradient,
  times_derivative
};

// Operands are bf16 or f16 with fp32 accumulation, and GELU is computed in fp32.
struct FusedGemm {
  int64_t tokens = 0, features = 0, inner = 0;
  const void* x = nullptr;  // [tokens, inner]
  // [features, inner]; GELU's gradient: [inner, features]
  const void* weight = nullptr;
  const void* bias = nullptr;    // [features]; GELU's gradient: none
  const void* source = nullptr;  // [tokens, features]: the residual, or what was saved of GELU
  void* aux = nullptr;           // [tokens, features]: GELU's input or derivative, written
  // x weight^T + bias (+ source); GELU of that; (x weight) times GELU's derivative. May be
  // `source`.
  void* out = nullptr;  // [tokens, features]
  // GELU's gradient: fp32 [parts, features], whose sum over parts is the sum of `out` over tokens
  // before rounding; parts = divide_up(tokens, tile_tokens)
  float* parts = nullptr;
  // Tiles of tokens that are traversed together along the features, 1 to 8. With 1 every tile of
  // tokens reads the whole weight, which is cheapest while the weight stays in L2.
  int swizzle = 1;
};

struct FusedKernel {
  const char* name;  // for people, in messages and traces
  int tile_features, tile_tokens;
  // Whether the kernel serves the problem on this device.
  bool (*supported)(const FusedGemm& problem);
  cudaError_t (*launch)(const FusedGemm& problem, int sms, cudaStream_t stream);
};

// The kernels of this build for operands of a type; none where CUTLASS was not found or Hopper is
// not among its architectures. The order is that of the remembered choices.
KernelList<FusedKernel>& fused_kernels(FusedWork work, DType type);
// Lists kernels, as a constant of the file that makes them.
struct ListFusedKernels {
  ListFusedKernels(FusedWork work, DType type, KernelList<FusedKernel> kernels) {
    fused_kernels(work, type) = kernels;
  }
};

}  // namespace tally::train::cuda
