#include "src/parallel/nvlink/peer_kernels.h"

#include <algorithm>

#include "src/parallel/nvlink/cuda_check.h"

namespace tally::train {
namespace {

constexpr size_t vector_bytes = 16;
constexpr size_t flag_count = size_t{most_peer_blocks} * most_peers;
// Flags and numbers of meetings, in an allocation that shares its pages with nothing else.
constexpr size_t peer_local_bytes = size_t{2} << 20;
static_assert((flag_count + most_peer_blocks) * sizeof(uint32_t) <= peer_local_bytes);

bool aligned(const void* data) {
  return reinterpret_cast<uintptr_t>(data) % vector_bytes == 0;
}

// Whether all blocks of a kernel run at once, beside others that wait for their peers.
bool has_room() {
  int device = 0, sms = 0;
  return cudaGetDevice(&device) == cudaSuccess &&
         cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device) == cudaSuccess &&
         sms > most_peer_blocks;
}

}  // namespace

std::unique_ptr<PeerKernels> PeerKernels::make(int rank, int size,
                                               const std::vector<Tensor>& memory,
                                               const GatherBytes& gather) {
  std::unique_ptr<PeerKernels> made(new PeerKernels(rank, size));
  const bool good =
      size <= most_peers && has_room() && made->allocate(peer_local_bytes, peer_local_bytes);
  if (!made->map(good, peer_local_bytes, memory, gather)) return nullptr;
  made->prepare_flags();
  return made;
}

void PeerKernels::prepare_flags() {
  flags_.rank = rank_;
  flags_.ranks = size_;
  flags_.meetings = reinterpret_cast<uint32_t*>(local_) + flag_count;
  for (int r = 0; r < size_; ++r) flags_.flags[r] = static_cast<uint32_t*>(at(r, local_));
}

// The sum of all ranks' `whole` from a byte on. It begins with this rank's numbers and goes round,
// so that ranks do not all read from the same one; a share's order is its owner's, and that is
// enough for equal bits.
PeerSum PeerKernels::sum_of(const Tensor& whole, int64_t first_byte) const {
  PeerSum sum;
  sum.type = whole.dtype;
  sum.sources = size_;
  for (int i = 0; i < size_; ++i)  // a share that is empty may begin behind the mapped memory
    sum.from[i] = static_cast<char*>(at((rank_ + i) % size_, whole.data)) + first_byte;
  return sum;
}

void PeerKernels::enqueue(cudaStream_t stream, const PeerSum& sum) const {
  check(add_peers(stream, flags_, sum), "a sum over GPUs");
}

bool PeerKernels::all_reduce(cudaStream_t stream, const Tensor& t) {
  if (!can_add_peers(t.dtype) || !aligned(t.data) || !peers_->holds(t.data, t.bytes()))
    return false;
  const auto vectors = static_cast<int64_t>(t.bytes() / vector_bytes);
  const int64_t share = (vectors + size_ - 1) / size_;
  const int64_t first = std::min(rank_ * share, vectors);
  PeerSum sum = sum_of(t, first * static_cast<int64_t>(vector_bytes));
  sum.targets = size_;
  for (int i = 0; i < size_; ++i) sum.to[i] = const_cast<void*>(sum.from[i]);
  sum.vectors = std::min(share, vectors - first);
  sum.most_vectors = share;
  if (rank_ == size_ - 1) sum.tail = static_cast<int>(t.bytes() % vector_bytes / size_of(t.dtype));
  enqueue(stream, sum);
  return true;
}

bool PeerKernels::reduce_scatter(cudaStream_t stream, const Tensor& whole, const Tensor& part) {
  if (!can_add_peers(whole.dtype) || !aligned(whole.data) || !aligned(part.data) ||
      part.bytes() % vector_bytes != 0 || !peers_->holds(whole.data, whole.bytes()))
    return false;
  PeerSum sum = sum_of(whole, rank_ * static_cast<int64_t>(part.bytes()));
  sum.targets = 1;
  sum.to[0] = part.data;
  sum.vectors = sum.most_vectors = static_cast<int64_t>(part.bytes() / vector_bytes);
  enqueue(stream, sum);
  return true;
}

bool PeerKernels::all_gather(cudaStream_t stream, const Tensor& part, const Tensor& whole) {
  if (!aligned(whole.data) || !aligned(part.data) || part.bytes() % vector_bytes != 0 ||
      !peers_->holds(whole.data, whole.bytes()))
    return false;
  PeerSum copy;
  copy.type = DType::f32;
  copy.sources = 1;
  copy.from[0] = part.data;
  char* own = static_cast<char*>(whole.data) + static_cast<size_t>(rank_) * part.bytes();
  for (int i = own == part.data ? 1 : 0; i < size_; ++i)
    copy.to[copy.targets++] = at((rank_ + i) % size_, own);
  copy.vectors = copy.most_vectors = static_cast<int64_t>(part.bytes() / vector_bytes);
  enqueue(stream, copy);
  return true;
}

}  // namespace tally::train
