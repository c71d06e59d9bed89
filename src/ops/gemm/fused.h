// GEMMs with epilogues that cuBLASLt lacks or is slow at: a bias; bias and residual; GELU; GELU's
// gradient. Built from CUTLASS for Hopper (sm_90a), several tile shapes each. The caller times them
// against the library's GEMM with a kernel of its own after it. Every tile shape is one source
// file, because each takes a minute to compile.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "src/ops/linear/linear.h"

namespace tally::train::cuda {

// Operands are bf16 or f16 with fp32 accumulation, and GELU is computed in fp32.
struct FusedGemm {
  int64_t tokens = 0, features = 0, inner = 0;
  const void* x = nullptr;  // [tokens, inner]
  // [features, inner]; GELU's gradient: [inner, features]
  const void* weight = nullptr;
  const void* bias = nullptr;  // [features]; GELU's gradient: none
  // bias: unused; with a residual: read; GELU: written, what is saved of x weight^T + bias; its
  // gradient: read, what was saved
  void* pre = nullptr;  // [tokens, features]
  // x weight^T + bias (+ pre); GELU of that; (x weight) times GELU's derivative, may be `pre`
  // itself
  void* out = nullptr;  // [tokens, features]
  // GELU's gradient: fp32 [parts, features], whose sum over parts is the sum of `out` over tokens
  // before rounding; parts = divide_up(tokens, tile_tokens)
  float* parts = nullptr;
  // Tiles of tokens that are traversed together along the features, 1 to 8. With 1 every tile of
  // tokens reads the whole weight, which is cheapest while the weight stays in L2.
  int swizzle = 1;
};

struct FusedKernel {
  const char* name;
  int tile_features, tile_tokens;
  // Whether the kernel serves the problem on this device.
  bool (*supported)(const FusedGemm& problem);
  cudaError_t (*launch)(const FusedGemm& problem, int sms, cudaStream_t stream);
};

// The kernels of this build for operands of a type; none where CUTLASS was not found or Hopper is not among its
// architectures.
struct FusedKernels {
  const FusedKernel* const* list = nullptr;
  int count = 0;
};
FusedKernels bias_kernels(DType type);
FusedKernels bias_residual_kernels(DType type);
// Of GELU's erf form only those that save its derivative; in f16 only these.
FusedKernels gelu_forward_kernels(DType type, SavedGelu form, GeluKind kind = GeluKind::tanh);
FusedKernels gelu_backward_kernels(DType type, SavedGelu form, GeluKind kind = GeluKind::tanh);

}  // namespace tally::train::cuda
