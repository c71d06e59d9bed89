#include "src/parallel/nvlink/peer_collectives.h"

#include <utility>

namespace tally::train {

PeerCollectives::~PeerCollectives() {
  if (local_) cudaFree(local_);
}

bool PeerCollectives::allocate(size_t bytes, size_t zeroed) {
  void* memory = nullptr;
  if (cudaMalloc(&memory, bytes) != cudaSuccess) {
    cudaGetLastError();  // so that no later check finds it
    return false;
  }
  local_ = static_cast<char*>(memory);
  return cudaMemset(local_, 0, zeroed) == cudaSuccess &&
         cudaStreamSynchronize(nullptr) == cudaSuccess;
}

bool PeerCollectives::map(bool good, size_t bytes, const std::vector<Tensor>& memory,
                          const GatherBytes& gather) {
  std::vector<MemoryBlock> blocks{{good ? local_ : nullptr, bytes}};
  for (const Tensor& t : memory) blocks.push_back({t.data, t.bytes()});
  peers_ = PeerMemory::map(rank_, size_, std::move(blocks), gather);
  return peers_ != nullptr;
}

void PeerCollectives::abandon() {
  local_ = nullptr;
  if (peers_) peers_->abandon();
}

}  // namespace tally::train
