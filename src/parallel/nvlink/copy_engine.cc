#include "src/parallel/nvlink/copy_engine.h"

#include <algorithm>

#include "src/parallel/nvlink/add_shares.h"
#include "src/parallel/nvlink/cuda_check.h"

namespace tally::train {
namespace {

// Bytes of each rank. A round of a sum takes some 0.3 ms, beside which two synchronizations are
// little.
constexpr size_t engine_local_bytes = size_t{64} << 20;
constexpr size_t flag_bytes = 4096, slot_alignment = 512;
// A batch of memory operations has at most 255, and a meeting three for each other rank.
constexpr int most_ranks = 64;

using BatchMemOp = CUresult (*)(CUstream, unsigned, CUstreamBatchMemOpParams*, unsigned);

// The runtime finds the function, so that the module does not need libcuda where it is linked.
BatchMemOp batch_mem_op() {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found{};
  constexpr unsigned since = 11070;  // the CUDA version that brought this form of it
  if (cudaGetDriverEntryPointByVersion("cuStreamBatchMemOp", &function, since, cudaEnableDefault,
                                       &found) != cudaSuccess ||
      found != cudaDriverEntryPointSuccess)
    return nullptr;
  return reinterpret_cast<BatchMemOp>(function);
}

CUstreamBatchMemOpParams write(const void* flag, uint32_t value) {
  CUstreamBatchMemOpParams op{};
  op.writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
  op.writeValue.address = reinterpret_cast<CUdeviceptr>(flag);
  op.writeValue.value = value;
  // The writes of the stream become visible to all GPUs first.
  op.writeValue.flags = CU_STREAM_WRITE_VALUE_DEFAULT;
  return op;
}

CUstreamBatchMemOpParams wait_for_one(const void* flag) {
  CUstreamBatchMemOpParams op{};
  op.waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
  op.waitValue.address = reinterpret_cast<CUdeviceptr>(flag);
  op.waitValue.value = 1;
  op.waitValue.flags = CU_STREAM_WAIT_VALUE_EQ;
  return op;
}

// Whether the driver takes such operations on this GPU.
bool waits_on_flags(void* flag) {
  const BatchMemOp enqueue = batch_mem_op();
  std::array<CUstreamBatchMemOpParams, 3> ops{write(flag, 1), wait_for_one(flag), write(flag, 0)};
  return enqueue != nullptr && enqueue(nullptr, ops.size(), ops.data(), 0) == CUDA_SUCCESS &&
         cudaStreamSynchronize(nullptr) == cudaSuccess;
}

}  // namespace

std::unique_ptr<CopyEngine> CopyEngine::make(int rank, int size, const std::vector<Tensor>& memory,
                                             const GatherBytes& gather) {
  std::unique_ptr<CopyEngine> made(new CopyEngine(rank, size));
  const bool good = size <= most_ranks && made->allocate(engine_local_bytes, flag_bytes) &&
                    waits_on_flags(made->local_);
  if (!made->map(good, engine_local_bytes, memory, gather)) return nullptr;
  made->prepare_meetings();
  return made;
}

// Peers take turns from the next one on, so that no two ranks push to the same one at a time.
template <typename F>
void CopyEngine::for_each_peer(const F& f) const {
  for (int i = 1; i < size_; ++i) f((rank_ + i) % size_);
}

// All ranks have reached this point when a rank's stream goes on. A rank has a flag for each other
// rank in each of two sets: the others set theirs here, and this rank clears them when all are set.
// An operation meets at set 0 and then at set 1, as often as it likes. No flag is set again before
// it was cleared: rank a sets its flag of set 0 at b for the next time after a has left the meeting
// at set 1, for which b has set its flag there, which b does after it has cleared set 0. The same
// with the sets exchanged, because a meeting at set 0 follows.
void CopyEngine::prepare_meetings() {
  for (int set = 0; set < 2; ++set) {
    auto& ops = meetings_[static_cast<size_t>(set)];
    const auto flag = [&](int from) { return local_ + (set * size_ + from) * sizeof(uint32_t); };
    for_each_peer([&](int peer) { ops.push_back(write(peers_->at(peer, flag(rank_)), 1)); });
    for_each_peer([&](int peer) { ops.push_back(wait_for_one(flag(peer))); });
    for_each_peer([&](int peer) { ops.push_back(write(flag(peer), 0)); });
  }
}

void CopyEngine::meet(cudaStream_t stream, int set) {
  static const BatchMemOp enqueue = batch_mem_op();
  auto& ops = meetings_[static_cast<size_t>(set)];
  const CUresult status = enqueue(stream, static_cast<unsigned>(ops.size()), ops.data(), 0);
  if (status != CUDA_SUCCESS)
    throw DeviceError(
        fmt::format("copies between GPUs: cuStreamBatchMemOp: error {}", static_cast<int>(status)));
}

// Elements that each other rank has room for in this rank's staging memory.
int64_t CopyEngine::slot(DType type) const {
  const size_t bytes = (engine_local_bytes - flag_bytes) / static_cast<size_t>(size_ - 1);
  return static_cast<int64_t>(bytes / slot_alignment * slot_alignment / size_of(type));
}

// The slot in which rank `at_rank` gets what `from_rank` pushes; `at_rank` or `from_rank` is this
// rank.
char* CopyEngine::slot_of(int at_rank, int from_rank) const {
  const auto nth = static_cast<size_t>(from_rank < at_rank ? from_rank : from_rank - 1);
  const char* slots = local_ + flag_bytes;
  const size_t offset = nth * static_cast<size_t>(slot(DType::u8));
  return at_rank == rank_ ? local_ + flag_bytes + offset : peers_->at(at_rank, slots + offset);
}

void CopyEngine::push(cudaStream_t stream, int peer, const void* mine, size_t bytes) {
  if (bytes == 0) return;
  check(cudaMemcpyAsync(peers_->at(peer, mine), mine, bytes, cudaMemcpyDefault, stream),
        "cudaMemcpyAsync");
}

void CopyEngine::push_shares(cudaStream_t stream, const Tensor& whole, int64_t share,
                             int64_t round) {
  for_each_peer([&](int peer) {
    const SharePiece p = piece_of(whole.numel(), share, slot(whole.dtype), peer, round);
    if (p.count == 0) return;
    const Tensor piece = whole.rows(p.first, p.count);
    check(
        cudaMemcpyAsync(slot_of(peer, rank_), piece.data, piece.bytes(), cudaMemcpyDefault, stream),
        "cudaMemcpyAsync");
  });
}

void CopyEngine::add_share(cudaStream_t stream, const Tensor& whole, int64_t share, int64_t round,
                           char* sum) {
  const SharePiece own = piece_of(whole.numel(), share, slot(whole.dtype), rank_, round);
  if (own.count == 0) return;
  Addends a;
  a.type = whole.dtype;
  a.own = whole.rows(own.first, own.count).data;
  a.staged = local_ + flag_bytes;
  a.stride = slot(whole.dtype);
  a.rank = rank_;
  a.ranks = size_;
  a.sum = sum + static_cast<size_t>(own.first - rank_ * share) * size_of(whole.dtype);
  a.count = own.count;
  check(add_shares(stream, a), "the sum of gradients");
}

// The staging memory is free when an operation begins: the last one has ended by a meeting after
// its sums. Ranks write to each other's `t` after all have got here.
bool CopyEngine::all_reduce(cudaStream_t stream, const Tensor& t) {
  if (!can_add_shares(t.dtype) || !peers_->holds(t.data, t.bytes())) return false;
  const Tensor flat = t.view({t.numel()});
  const int64_t share = share_of(flat.numel(), size_), most = slot(t.dtype);
  for (int64_t round = 0; round < rounds_of(share, most); ++round) {
    push_shares(stream, flat, share, round);
    meet(stream, 0);
    add_share(stream, flat, share, round,
              static_cast<char*>(t.data) + static_cast<size_t>(rank_ * share) * size_of(t.dtype));
    const SharePiece own = piece_of(flat.numel(), share, most, rank_, round);
    if (own.count > 0) {
      const Tensor sum = flat.rows(own.first, own.count);
      for_each_peer([&](int peer) { push(stream, peer, sum.data, sum.bytes()); });
    }
    meet(stream, 1);
  }
  return true;
}

bool CopyEngine::reduce_scatter(cudaStream_t stream, const Tensor& whole, const Tensor& part) {
  if (!can_add_shares(whole.dtype)) return false;
  const Tensor flat = whole.view({whole.numel()});
  const int64_t share = part.numel();
  for (int64_t round = 0; round < rounds_of(share, slot(whole.dtype)); ++round) {
    push_shares(stream, flat, share, round);
    meet(stream, 0);
    add_share(stream, flat, share, round, static_cast<char*>(part.data));
    meet(stream, 1);
  }
  return true;
}

// Other ranks may read their `whole` until they get here.
bool CopyEngine::all_gather(cudaStream_t stream, const Tensor& part, const Tensor& whole) {
  if (!peers_->holds(whole.data, whole.bytes())) return false;
  char* own = static_cast<char*>(whole.data) + static_cast<size_t>(rank_) * part.bytes();
  if (own != part.data)
    check(cudaMemcpyAsync(own, part.data, part.bytes(), cudaMemcpyDefault, stream),
          "cudaMemcpyAsync");
  meet(stream, 0);
  for_each_peer([&](int peer) { push(stream, peer, own, part.bytes()); });
  meet(stream, 1);
  return true;
}

}  // namespace tally::train
