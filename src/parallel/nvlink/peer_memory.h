// Device memory that processes of one host map from each other (CUDA IPC). Part of the module that
// holds NCCL.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

namespace tally::train {

struct MemoryBlock {
  void* data = nullptr;  // null: this rank has none
  size_t bytes = 0;
};

// All ranks' bytes, in their order. Collective; all pass equally many.
using GatherBytes = std::function<std::vector<char>(const std::vector<char>& mine)>;

class PeerMemory {
 public:
  // Collective. Every rank maps the others' blocks. Block k of one rank corresponds to block k of
  // the others and is as large. Null on all ranks where one of them cannot: its memory is not of
  // cudaMalloc, its blocks have other sizes, its GPU or its container does not allow it.
  static std::unique_ptr<PeerMemory> map(int rank, int size, std::vector<MemoryBlock> blocks,
                                         const GatherBytes& gather);
  // Closes what was mapped. Nobody may be writing there.
  ~PeerMemory();
  PeerMemory(const PeerMemory&) = delete;
  PeerMemory& operator=(const PeerMemory&) = delete;

  // Whether these bytes lie in one block.
  bool holds(const void* data, size_t bytes) const;
  // The address at which rank `peer` has what this rank has at `mine`, which lies in a block.
  char* at(int peer, const void* mine) const;
  // Leaves the mappings to the end of the process.
  void abandon() { opened_.clear(); }

 private:
  // The description of a block that a rank sends to the others.
  struct Offer {
    cudaIpcMemHandle_t handle;  // the allocation's
    size_t offset, bytes;       // the block's in it; 0 bytes: it cannot be mapped
  };
  struct Opened {
    int peer;
    cudaIpcMemHandle_t handle;
    void* base;
  };

  PeerMemory(int rank, int size, std::vector<MemoryBlock> blocks);
  static Offer offer_of(const MemoryBlock& block);
  // `offers`: [ranks, blocks].
  bool open(const std::vector<Offer>& offers);
  char* open(int peer, const Offer& offer);
  size_t block_of(const void* data) const;

  const int rank_, size_;
  const std::vector<MemoryBlock> blocks_;
  std::vector<char*> mapped_;  // [ranks, blocks]; this rank's are null
  std::vector<Opened> opened_;
};

}  // namespace tally::train
