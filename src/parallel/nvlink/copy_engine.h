// Collective operations whose data is moved by copy engines, which take no SMs from the kernels
// beside them: copies into the memory of the other processes of this host, over NVLink. Only sums
// need a kernel, and that is short. Part of the module that holds NCCL.
//
// A rank pushes and never reads from another: for a sum, its pieces of the others' shares into
// their staging memory; then each rank adds up its own share, once and in the order of the ranks,
// so that all ranks get the same bits, and pushes the sum to the others. Between these steps the
// ranks meet at flags in device memory, on which streams wait without a kernel. Everything is a
// constant, so that a CUDA graph can record it.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <array>
#include <memory>
#include <vector>

#include "src/parallel/nvlink/peer_collectives.h"
#include "src/parallel/nvlink/shares.h"

namespace tally::train {

class CopyEngine final : public PeerCollectives {
 public:
  // Collective. `memory`: what other ranks may write to; see PeerMemory::map(). Null on all ranks
  // where one of them cannot.
  static std::unique_ptr<CopyEngine> make(int rank, int size, const std::vector<Tensor>& memory,
                                          const GatherBytes& gather);

  bool all_reduce(cudaStream_t stream, const Tensor& t) override;
  bool reduce_scatter(cudaStream_t stream, const Tensor& whole, const Tensor& part) override;
  bool all_gather(cudaStream_t stream, const Tensor& part, const Tensor& whole) override;

 private:
  using PeerCollectives::PeerCollectives;
  void prepare_meetings();
  void meet(cudaStream_t stream, int set);
  int64_t slot(DType type) const;
  char* slot_of(int at_rank, int from_rank) const;
  void push_shares(cudaStream_t stream, const Tensor& whole, int64_t share, int64_t round);
  void add_share(cudaStream_t stream, const Tensor& whole, int64_t share, int64_t round, char* sum);
  void push(cudaStream_t stream, int peer, const void* mine, size_t bytes);
  template <typename F>
  void for_each_peer(const F& f) const;

  // The own memory has flags, and a slot for each other rank.
  std::array<std::vector<CUstreamBatchMemOpParams>, 2> meetings_;
};

}  // namespace tally::train
