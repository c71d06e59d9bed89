// The interface between flash.cu and the kernels, which are compiled in one file for each kind of
// arithmetic.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "src/device/step_state.h"

namespace tally::train::cuda {

constexpr int key_block = 64;  // rows and columns of a block of dS

// All tensors are f32, laid out as attention.h says; heads are counted (batch, head).
struct Flash {
  const float* qkv;
  const float* dout;   // backward only, like what follows up to dqkv
  const float* delta;  // [B,H,T]: rowsum(dO O)
  float* tiles;        // blocks of dS of the heads in work, see tile_index()
  float* dqkv;
  float* out;    // forward only
  float* stats;  // [B,H,T]
  int64_t first_head;
  int tokens, heads, head_dim;
  float scale;
  bool causal, dropout;
  uint32_t threshold;
  float keep_scale;
  DropoutSeed seed;

  TALLY_HOST_DEVICE int blocks() const { return (tokens + key_block - 1) / key_block; }
  // The blocks of dS that a head has, and the index of the block of given queries and keys. Under a
  // causal mask only blocks that are not all zero are counted.
  TALLY_HOST_DEVICE int64_t tiles_a_head() const {
    const int64_t n = blocks();
    return causal ? n * (n + 1) / 2 : n * n;
  }
  TALLY_HOST_DEVICE int64_t tile_index(int64_t query, int64_t key) const {
    return causal ? query * (query + 1) / 2 + key : query * blocks() + key;
  }
};

struct FlashKernels {
  // Enqueue for `count` heads from first_head on.
  void (*forward)(const Flash& p, int64_t count, cudaStream_t stream);
  void (*backward)(const Flash& p, int64_t count, cudaStream_t stream);
  size_t shared_bytes;  // the most that a kernel takes
};

// The kernels for heads of at most 64 (`wide`: 128).
FlashKernels flash_ieee(bool wide);
FlashKernels flash_float64(bool wide);  // only where float64_gemms_serve()
FlashKernels flash_tf32(bool wide);
FlashKernels flash_tf32x3(bool wide);

}  // namespace tally::train::cuda
