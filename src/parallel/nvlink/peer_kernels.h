// Collective operations by one kernel each, which reads and writes the other processes' memory over
// NVLink. They are shorter than NCCL's, which moves data through buffers of its own. For operations
// that nothing overlaps: they take SMs. Part of the module that holds NCCL.
//
// Every operation is two meetings of all ranks (peer_sums.h) with the work between them. A rank alone
// reads and writes its share of everybody's memory, so that sums are in place and all ranks get the
// same bits.
//   The first meeting: what the other ranks' kernels before have written is there, and nobody needs
//   the memory that is written now. An operation may not rely on the last one's meeting for that,
//   because kernels that read its result may have followed.
//   The last meeting: everything has arrived, and all ranks are done reading, so that what follows
//   may overwrite it.
//
// A rank that dies leaves the others' kernels waiting, as with NCCL.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <vector>

#include "src/device/tensor.h"
#include "src/parallel/nvlink/peer_memory.h"
#include "src/parallel/nvlink/peer_sums.h"

namespace tally::train {

class PeerKernels {
 public:
  // Collective. `memory`: what other ranks may read and write; see PeerMemory::map(). Null on all
  // ranks where one of them cannot.
  static std::unique_ptr<PeerKernels> make(int rank, int size, const std::vector<Tensor>& memory,
                                           const GatherBytes& gather);
  // Releases this rank's flags: when no rank has them mapped any more.
  ~PeerKernels();
  PeerKernels(const PeerKernels&) = delete;
  PeerKernels& operator=(const PeerKernels&) = delete;

  // The operations of Communicator, on `stream`; all on one stream. False: not carried, and
  // nothing was enqueued. The answer is the same on all ranks, whose tensors lie at the same places
  // of `memory` and whose parts elsewhere are aligned alike.
  bool all_reduce(cudaStream_t stream, const Tensor& t);
  bool reduce_scatter(cudaStream_t stream, const Tensor& whole, const Tensor& part);
  bool all_gather(cudaStream_t stream, const Tensor& part, const Tensor& whole);

  // Closes the others' memory; what was enqueued is done.
  void unmap() { peers_.reset(); }
  // Leaves everything to the end of the process, because kernels may wait for ever.
  void abandon();

 private:
  PeerKernels(int rank, int size) : rank_(rank), size_(size) {}
  bool allocate();
  void prepare_flags();
  void* at(int peer, void* mine) const { return peer == rank_ ? mine : peers_->at(peer, mine); }
  PeerSum sum_of(const Tensor& whole, int64_t first_byte) const;
  void enqueue(cudaStream_t stream, const PeerSum& sum) const;

  const int rank_, size_;
  uint32_t* local_ = nullptr;  // flags, and the numbers of meetings
  std::unique_ptr<PeerMemory> peers_;
  PeerFlags flags_;
};

}  // namespace tally::train
