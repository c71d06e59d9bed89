// Collective operations over memory that the GPUs of a host map from each other. Part of the module
// that holds NCCL. A rank that dies leaves the others' streams waiting, as with NCCL.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <vector>

#include "src/device/tensor.h"
#include "src/parallel/nvlink/peer_memory.h"

namespace tally::train {

class PeerCollectives {
 public:
  // Releases this rank's own memory: when no rank has it mapped any more.
  virtual ~PeerCollectives();
  PeerCollectives(const PeerCollectives&) = delete;
  PeerCollectives& operator=(const PeerCollectives&) = delete;

  // The operations of Communicator; each rank uses one stream for all. False: not carried, and
  // nothing was enqueued. The answer is the same on all ranks, whose tensors lie at the same
  // offsets of the mapped memory and whose parts elsewhere are aligned alike.
  virtual bool all_reduce(cudaStream_t stream, const Tensor& t) = 0;
  virtual bool reduce_scatter(cudaStream_t stream, const Tensor& whole, const Tensor& part) = 0;
  virtual bool all_gather(cudaStream_t stream, const Tensor& part, const Tensor& whole) = 0;

  // Closes the others' memory; what was enqueued is done.
  void unmap() { peers_.reset(); }
  // Leaves everything to the end of the process, because streams may wait for ever.
  void abandon();

 protected:
  PeerCollectives(int rank, int size) : rank_(rank), size_(size) {}
  // Allocates this rank's own memory, whose first `zeroed` bytes are zero.
  bool allocate(size_t bytes, size_t zeroed);
  // Collective. Maps the own memory of `bytes`, where `good`, and `memory`. False on all ranks
  // where one of them cannot.
  bool map(bool good, size_t bytes, const std::vector<Tensor>& memory, const GatherBytes& gather);

  const int rank_, size_;
  char* local_ = nullptr;
  std::unique_ptr<PeerMemory> peers_;
};

}  // namespace tally::train
