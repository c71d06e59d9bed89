// The kernels of short.h.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstdint>

#include "src/ops/attention/hopper/kernels.h"

namespace tally::train::cuda::hopper {

// The sequences of both passes.
struct ShortSequences {
  const int32_t* cu_seqlens;  // null: every sequence has `tokens`
  int count;                  // sequences, or documents, of which the last may be empty
  int batch, tokens, heads;   // `tokens` as in the shape: documents lie in rows of so many
  float scale;
  int mask_groups;  // L / 8 of short.h
  AttentionDropout dropout;
};

struct ShortForward {
  CUtensorMap qkv;  // boxes of block_rows rows
  void* out;        // [batch, tokens, heads, 64]
  float* stats;     // [batch, heads, tokens]
  ShortSequences sequences;
};

struct ShortBackward {
  CUtensorMap qkv, out, dout;  // boxes of block_rows rows
  const float* stats;          // [batch, heads, tokens]
  void* dqkv;                  // [batch, tokens, 3, heads, 64]
  ShortSequences sequences;
};

// The kernels, as Kernels has those of long sequences. At most one block of threads an SM.
struct ShortKernels {
  cudaError_t (*forward)(const ShortForward& p, DType dtype, int sms,
                         cudaStream_t stream) = nullptr;
  cudaError_t (*backward)(const ShortBackward& p, DType dtype, int sms,
                          cudaStream_t stream) = nullptr;
};
inline ShortKernels short_kernels;

}  // namespace tally::train::cuda::hopper
