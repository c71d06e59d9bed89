// Kernels that read and write the memory of several GPUs of one host at once, over NVLink.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "src/device/tensor.h"

namespace tally::train {

constexpr int most_peers = 8;
// A few dozen blocks keep NVLink busy. All of them have to run at once, because they wait for the
// other ranks' blocks, and so have NCCL's (at most 32) beside them: an A100 has 108 SMs.
constexpr int most_peer_blocks = 64;

// The counters by which the blocks of a kernel wait for each other: block b of each rank waits for
// block b of the others. Rank a says at flags[b][a] of every other rank how often it has come; the
// number grows for ever, and whoever waits goes on when it is as large as its own. A rank is never
// more than one meeting ahead.
struct PeerFlags {
  uint32_t* flags[most_peers] = {};  // each rank's: [most_peer_blocks, most_peers]
  uint32_t* meetings = nullptr;      // this rank's, [most_peer_blocks]: how often a block has met
  int rank = 0, ranks = 1;
};

// A sum of `sources` ranks' elements, added in float32 (f64: float64) in the order of `from` and
// rounded once, or with one source a copy.
struct PeerSum {
  DType type = DType::f32;
  const void* from[most_peers] = {};
  void* to[most_peers] = {};  // may be those of `from`
  int sources = 0, targets = 0;
  int64_t vectors = 0;  // vectors of 16 bytes, to which all pointers are aligned
  int tail = 0;         // elements behind them, less than a vector
  // The most vectors that any rank has: ranks take equally many blocks.
  int64_t most_vectors = 0;
};

// f64, f32, bf16 and f16.
bool can_add_peers(DType type);
// Enqueues: all ranks meet, do their sums, and meet again. Returns the launch's error.
cudaError_t add_peers(cudaStream_t stream, const PeerFlags& flags, const PeerSum& sum);

}  // namespace tally::train
