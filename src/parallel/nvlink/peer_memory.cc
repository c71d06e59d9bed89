#include "src/parallel/nvlink/peer_memory.h"

#include <cuda.h>

#include <algorithm>
#include <cstring>

namespace tally::train {
namespace {

using AddressRange = CUresult (*)(CUdeviceptr*, size_t*, CUdeviceptr);

// The runtime finds the function, so that the module does not need libcuda where it is linked.
AddressRange address_range() {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found{};
  constexpr unsigned since = 3020;  // the CUDA version that brought this form of it
  if (cudaGetDriverEntryPointByVersion("cuMemGetAddressRange", &function, since, cudaEnableDefault,
                                       &found) != cudaSuccess ||
      found != cudaDriverEntryPointSuccess)
    return nullptr;
  return reinterpret_cast<AddressRange>(function);
}

}  // namespace

// A handle is that of a whole allocation.
PeerMemory::Offer PeerMemory::offer_of(const MemoryBlock& block) {
  Offer offer{};
  CUdeviceptr base = 0;
  size_t bytes = 0;
  const auto data = reinterpret_cast<CUdeviceptr>(block.data);
  const AddressRange range = address_range();
  if (block.data == nullptr || range == nullptr) return offer;
  if (range(&base, &bytes, data) != CUDA_SUCCESS || data + block.bytes > base + bytes) return offer;
  if (cudaIpcGetMemHandle(&offer.handle, reinterpret_cast<void*>(base)) != cudaSuccess) {
    cudaGetLastError();  // so that no later check finds it
    return offer;
  }
  offer.offset = data - base;
  offer.bytes = block.bytes;
  return offer;
}

PeerMemory::PeerMemory(int rank, int size, std::vector<MemoryBlock> blocks)
    : rank_(rank), size_(size), blocks_(std::move(blocks)) {}

PeerMemory::~PeerMemory() {
  for (const Opened& opened : opened_) cudaIpcCloseMemHandle(opened.base);
}

std::unique_ptr<PeerMemory> PeerMemory::map(int rank, int size, std::vector<MemoryBlock> blocks,
                                            const GatherBytes& gather) {
  const size_t count = blocks.size();
  std::vector<Offer> offers(count);
  std::transform(blocks.begin(), blocks.end(), offers.begin(), offer_of);
  std::vector<char> mine(count * sizeof(Offer));
  std::memcpy(mine.data(), offers.data(), mine.size());
  const std::vector<char> all = gather(mine);
  offers.resize(count * static_cast<size_t>(size));
  std::memcpy(offers.data(), all.data(), offers.size() * sizeof(Offer));
  // All ranks see the same offers.
  for (size_t i = 0; i < offers.size(); ++i)
    if (offers[i].bytes == 0 || offers[i].bytes != offers[i % count].bytes) return nullptr;
  std::unique_ptr<PeerMemory> made(new PeerMemory(rank, size, std::move(blocks)));
  const std::vector<char> opened = gather({static_cast<char>(made->open(offers) ? 1 : 0)});
  return std::count(opened.begin(), opened.end(), 1) == size ? std::move(made) : nullptr;
}

bool PeerMemory::open(const std::vector<Offer>& offers) {
  mapped_.assign(offers.size(), nullptr);
  for (size_t i = 0; i < offers.size(); ++i) {
    const int peer = static_cast<int>(i / blocks_.size());
    if (peer == rank_) continue;
    char* base = open(peer, offers[i]);
    if (base == nullptr) return false;
    mapped_[i] = base + offers[i].offset;
  }
  return true;
}

// Blocks of one allocation share its mapping.
char* PeerMemory::open(int peer, const Offer& offer) {
  for (const Opened& opened : opened_)
    if (opened.peer == peer && std::memcmp(&opened.handle, &offer.handle, sizeof offer.handle) == 0)
      return static_cast<char*>(opened.base);
  void* base = nullptr;
  if (cudaIpcOpenMemHandle(&base, offer.handle, cudaIpcMemLazyEnablePeerAccess) != cudaSuccess) {
    cudaGetLastError();
    return nullptr;
  }
  opened_.push_back({peer, offer.handle, base});
  return static_cast<char*>(base);
}

size_t PeerMemory::block_of(const void* data) const {
  const auto* at = static_cast<const char*>(data);
  for (size_t k = 0; k < blocks_.size(); ++k) {
    const auto* begin = static_cast<const char*>(blocks_[k].data);
    if (at >= begin && at < begin + blocks_[k].bytes) return k;
  }
  return blocks_.size();
}

bool PeerMemory::holds(const void* data, size_t bytes) const {
  const size_t k = block_of(data);
  if (k == blocks_.size()) return false;
  const auto* end = static_cast<const char*>(blocks_[k].data) + blocks_[k].bytes;
  return static_cast<const char*>(data) + bytes <= end;
}

char* PeerMemory::at(int peer, const void* mine) const {
  const size_t k = block_of(mine);
  const auto offset = static_cast<const char*>(mine) - static_cast<const char*>(blocks_[k].data);
  return mapped_[static_cast<size_t>(peer) * blocks_.size() + k] + offset;
}

}  // namespace tally::train
