// The GEMM of fused linear cross-entropy: a head's GEMM with the exponentials in its epilogue,
// built from CUTLASS for Hopper (sm_90a), for loss.h's linear_cross_entropy.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "src/ops/gemm/kernel_list.h"

namespace tally::train::cuda {

// The limit of exponents, in powers of two. With it sums over any vocabulary, and their products
// with weights, stay finite in float32. Rows that reach it are redone (fused_passes.h).
constexpr float largest_exponent = 80;

// out[i,j] = 2^min(log2(e) x[i] weight[j] - shifts[i], largest_exponent), in bf16; 0 where
// j == labels[i] and from `vocabulary` on. In float32 until it is stored, accumulation too.
struct CrossEntropyGemm {
  int64_t tokens = 0, columns = 0, inner = 0;
  int64_t vocabulary = 0;           // columns that count
  const void* x = nullptr;          // [tokens, inner] bf16
  const void* weight = nullptr;     // [columns, inner] bf16
  const float* shifts = nullptr;    // [tokens]
  const int32_t* labels = nullptr;  // [tokens]; negative: none
  void* out = nullptr;              // [tokens, columns] bf16
  // [parts, tokens]: their sum over parts is the sum of `out` over columns before rounding;
  // parts = divide_up(columns, tile_columns)
  float* parts = nullptr;
  // Tiles of columns that are traversed together along the tokens, 1 to 8.
  int swizzle = 1;
};

struct CrossEntropyKernel {
  const char* name;
  int tile_columns;
  // Whether the kernel serves the problem on this device.
  bool (*supported)(const CrossEntropyGemm& problem);
  cudaError_t (*launch)(const CrossEntropyGemm& problem, int sms, cudaStream_t stream);
};

// The kernels of this build, which fused_gemm.cu lists; none in builds without it.
KernelList<CrossEntropyKernel>& cross_entropy_kernels();

}  // namespace tally::train::cuda
