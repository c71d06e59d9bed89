// Products with a pass in their epilogue that cuBLASLt lacks or does slowly, from CUTLASS's parts
// for Hopper (sm_90a): a bias, with a residual, GELU, GELU's gradient. Several tile shapes each;
// the caller times them against the library's product and a pass of its own. Every tile shape is
// one source file, because each takes a minute to compile.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "src/ops/linear/linear.h"

namespace tally::train::cuda {

// All compute with bf16 operands and fp32 accumulation, and GELU in its tanh form in fp32.
struct FusedGemm {
  int64_t tokens = 0, features = 0, inner = 0;
  const void* x = nullptr;  // [tokens, inner]
  // [features, inner]; GELU's gradient: [inner, features]
  const void* weight = nullptr;
  const void* bias = nullptr;  // [features]; GELU's gradient: none
  // bias: none; with a residual: that, read; GELU: written, what is kept of x weight^T + bias; its
  // gradient: that, read
  void* pre = nullptr;  // [tokens, features]
  // x weight^T + bias (+ pre); GELU of that; (x weight) times GELU's slope, may be `pre` itself
  void* out = nullptr;  // [tokens, features]
  // GELU's gradient: fp32 [parts, features], whose sum over parts is the sum of `out` over tokens
  // before rounding; parts = divide_up(tokens, tile_tokens)
  float* parts = nullptr;
  // Tiles of tokens that share the way along the features, 1 to 8: with one every tile of tokens
  // reads the whole weight, which is cheapest while that stays in the cache.
  int swizzle = 1;
};

struct FusedKernel {
  const char* name;
  int tile_features, tile_tokens;
  // Whether the kernel serves the problem on this device.
  bool (*supported)(const FusedGemm& problem);
  cudaError_t (*launch)(const FusedGemm& problem, int sms, cudaStream_t stream);
};

// The kernels of this build; none where CUTLASS was not found or Hopper is not among its
// architectures.
struct FusedKernels {
  const FusedKernel* const* list = nullptr;
  int count = 0;
};
FusedKernels bias_kernels();
FusedKernels bias_residual_kernels();
FusedKernels gelu_forward_kernels(SavedGelu keeps);
FusedKernels gelu_backward_kernels(SavedGelu keeps);

}  // namespace tally::train::cuda
