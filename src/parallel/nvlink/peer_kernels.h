// Collective operations by one kernel each, which reads and writes the other processes' memory over
// NVLink. They are shorter than NCCL's, which moves data through buffers of its own. For operations
// that nothing overlaps: they take SMs. Part of the module that holds NCCL.
//
// Every operation is two meetings of all ranks (peer_sums.h) with the work between them. A rank
// alone reads and writes its share of everybody's memory, so that sums are in place and all ranks
// get the same bits.
//   The first meeting: what the other ranks' kernels before have written is there, and nobody needs
//   the memory that is written now. An operation may not rely on the last one's meeting for that,
//   because kernels that read its result may have followed.
//   The last meeting: everything has arrived, and all ranks are done reading, so that what follows
//   may overwrite it.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <vector>

#include "src/parallel/nvlink/peer_collectives.h"
#include "src/parallel/nvlink/peer_sums.h"

namespace tally::train {

class PeerKernels final : public PeerCollectives {
 public:
  // Collective. `memory`: what other ranks may read and write; see PeerMemory::map(). Null on all
  // ranks where one of them cannot.
  static std::unique_ptr<PeerKernels> make(int rank, int size, const std::vector<Tensor>& memory,
                                           const GatherBytes& gather);

  bool all_reduce(cudaStream_t stream, const Tensor& t) override;
  bool reduce_scatter(cudaStream_t stream, const Tensor& whole, const Tensor& part) override;
  bool all_gather(cudaStream_t stream, const Tensor& part, const Tensor& whole) override;

 private:
  using PeerCollectives::PeerCollectives;
  void prepare_flags();
  void* at(int peer, void* mine) const { return peer == rank_ ? mine : peers_->at(peer, mine); }
  PeerSum sum_of(const Tensor& whole, int64_t first_byte) const;
  void enqueue(cudaStream_t stream, const PeerSum& sum) const;

  PeerFlags flags_;  // in the own memory, with the numbers of meetings behind them
};

}  // namespace tally::train
