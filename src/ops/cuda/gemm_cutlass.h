// The two products of the MLP whose epilogue cuBLASLt lacks or does slowly, from CUTLASS's parts
// for Hopper (sm_90a). Several tile shapes each; the caller times them against the library's
// product and a pass of its own. Every tile shape is one source file, because each takes a minute
// to compile.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

namespace tally::train::cuda {

// Both compute with bf16 operands and fp32 accumulation, and GELU in its tanh form in fp32.
struct FusedGelu {
  int64_t tokens = 0, features = 0, inner = 0;  // features: the wide side of the MLP
  const void* x = nullptr;                      // [tokens, inner]
  // forward: [features, inner]; backward: [inner, features]
  const void* weight = nullptr;
  const void* bias = nullptr;  // forward: [features]
  // forward: written, x weight^T + bias; backward: read
  void* pre = nullptr;  // [tokens, features]
  // forward: gelu(pre); backward: (x weight) gelu'(pre), may be `pre` itself
  void* out = nullptr;  // [tokens, features]
  // backward: fp32 [parts, features], whose sum over parts is the sum of `out` over tokens before
  // rounding; parts = divide_up(tokens, tile_tokens)
  float* parts = nullptr;
};

struct FusedGeluKernel {
  const char* name;
  int tile_features, tile_tokens;
  // Whether the kernel serves the problem on this device.
  bool (*supported)(const FusedGelu& problem);
  cudaError_t (*launch)(const FusedGelu& problem, int multiprocessors, cudaStream_t stream);
};

// The kernels of this build; none where CUTLASS was not found or Hopper is not among its
// architectures.
struct FusedGeluKernels {
  const FusedGeluKernel* const* list = nullptr;
  int count = 0;
};
FusedGeluKernels gelu_forward_kernels();
FusedGeluKernels gelu_backward_kernels();

}  // namespace tally::train::cuda
