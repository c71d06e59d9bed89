// The kernels of hopper.h: forward(), and the backward pass's prepare(), multiply() and finish(),
// in this order.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstdint>

#include "src/device/step_state.h"
#include "src/device/tensor.h"

namespace tally::train::cuda::hopper {

constexpr int block_rows = 128;  // rows of a block of queries or keys
constexpr int head_dim = 64, wide_head_dim = 128;
constexpr int store_rows = 16;      // rows that a warp writes at a time
constexpr int wide_turn_rows = 64;  // queries of a turn of wide_kernels.multiply

// Dropout by attention.h's mask; a row of it has `tokens` elements.
struct AttentionDropout {
  DropoutSeed seed;
  uint32_t threshold;  // philox.h; 0: no dropout
  float keep_scale;
};

struct Forward {
  CUtensorMap qkv;      // boxes of one block's rows and 64 columns
  CUtensorMap out;      // boxes of store_rows rows
  float* stats;         // [batch, heads, tokens]
  unsigned* next_item;  // the next in the queue of query blocks
  int batch, heads, tokens;
  int kv_heads;  // heads of K and V; divides `heads`
  int blocks;    // blocks of a head: tokens / block_rows
  int group;     // heads that run together
  bool causal;
  float scale;
  AttentionDropout dropout;
};

struct Backward {
  // Boxes of one block's rows (wide_kernels: wide_turn_rows) and 64 columns.
  CUtensorMap qkv, dout;
  const void* out;             // [batch, tokens, heads, head_dim]
  const void* dout_data;       // the same
  const float* stats;          // [batch, heads, tokens]
  float *base2_stats, *delta;  // the same; stats / ln 2, and rowsum(dO O)
  // dQ / scale: for each head and 64 queries and 64 columns, a thread's sums in fours: [batch, heads,
  // tokens / 64, head_dim / 64][8][128 threads][4], see wgmma.cuh.
  float* dq_sums;
  unsigned* next_item;  // the next in the queue of key blocks
  void* dqkv;           // [batch, tokens, heads + 2 kv_heads, head_dim]
  // Null, or sums of dQ over half a block of queries: [batch, tokens / 64, heads, head_dim].
  float* q_parts;
  int batch, heads, tokens;
  int kv_heads;  // heads of K and V; divides `heads`
  int blocks;    // blocks of a head: tokens / block_rows
  bool causal;
  float scale;
  AttentionDropout dropout;
  int group;  // heads of K and V that run together; of wide_kernels
};

// The kernels. The files that have them set them before main(); in builds without code for compute
// capability 9.0 they stay null.
struct Kernels {
  // Computes out and stats. At most one block of threads an SM.
  cudaError_t (*forward)(const Forward& p, DType dtype, int sms, cudaStream_t stream) = nullptr;
  // Computes delta and base2_stats; sets dq_sums and next_item to 0.
  cudaError_t (*prepare)(const Backward& p, DType dtype, cudaStream_t stream) = nullptr;
  // Computes dK and dV; adds to dq_sums. At most one block of threads an SM.
  cudaError_t (*multiply)(const Backward& p, DType dtype, int sms, cudaStream_t stream) = nullptr;
  // Computes dQ and q_parts from dq_sums.
  cudaError_t (*finish)(const Backward& p, DType dtype, cudaStream_t stream) = nullptr;
};
inline Kernels kernels, wide_kernels;  // for heads of 64 and of 128

inline bool built() {
  return kernels.forward != nullptr;
}

}  // namespace tally::train::cuda::hopper
