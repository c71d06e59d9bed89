// The forward kernel of short_kernels.h, for compute capability 9.0 only. Each of the two
// computing warpgroups has 64 queries and all keys.
#include <algorithm>

#include "src/ops/attention/hopper/short.cuh"

namespace tally::train::cuda::hopper {
namespace {

constexpr int slots = 4;

struct alignas(1024) Shared {
  uint8_t q[slots][tile_bytes], k[slots][tile_bytes], v[slots][tile_bytes];
  uint4 kept[2][half_rows];  // for each warpgroup's queries: a bit a key
  uint64_t full[slots], empty[slots];
  ShortItem items[slots];
};
static_assert(sizeof(Shared) <= most_shared);

template <typename T, bool dropout>
class Multiplier {
 public:
  __device__ Multiplier(const ShortForward& p, Shared& s, int group)
      : p_(p),
        s_(s),
        group_(group),
        thread_(static_cast<int>(threadIdx.x % warpgroup)),
        seed_(dropout ? p.sequences.dropout.seed.get() : 0) {}

  __device__ void run() {
    const auto at = [](const auto& object) { return shared_address(&object); };
    for (int n = 0;; ++n) {
      const int slot = n % slots;
      barrier_wait(at(s_.full[slot]), n / slots & 1);
      const ShortItem item = s_.items[slot];
      if (item.length < 0) return;
      float scores[64], out[32];
      uint32_t p[32];
      multiply_scores(scores, slot);
      if (dropout) draw(item);
      wgmma_wait<0>();
      wgmma_arrived(scores);
      float sums[2];
      softmax(scores, item, p, sums);
      const uint64_t v = wgmma_tile(at(s_.v[slot]));
      wgmma_fence();
#pragma unroll
      for (int k = 0; k < 8; ++k) Wgmma<T>::from_registers(out, p + 4 * k, v + 128 * k, k > 0);
      wgmma_commit();
      wgmma_wait<0>();
      wgmma_arrived(out);
      write(out, sums, item, slot);
      fence_async_proxy();
      __syncwarp();
      if (thread_ % 32 == 0) barrier_arrive(at(s_.empty[slot]));
    }
  }

 private:
  __device__ void multiply_scores(float (&scores)[64], int slot) {
    const uint64_t q = wgmma_tile(shared_address(s_.q[slot]) + group_ * half_bytes),
                   k = wgmma_tile(shared_address(s_.k[slot]));
    wgmma_fence();
#pragma unroll
    for (int i = 0; i < 4; ++i) Wgmma<T>::scores(scores, q + 2 * i, k + 2 * i, i > 0);
    wgmma_commit();
  }

  // Two threads a query, half of the keys each.
  __device__ void draw(const ShortItem& item) {
    const int row = thread_ / 2, half = thread_ % 2, query = group_ * half_rows + row;
    const Extent e = extent_of(item, query);
    uint64_t kept = 0;
    if (query < item.length && half * half_rows < e.end - e.begin)
      kept = kept_of_document(seed_, p_.sequences, item.statistic + query, half);
    if (item.packed) {
      const uint64_t other = __shfl_xor_sync(0xffffffffU, kept, 1);
      kept = kept_of_tile(half ? other : kept, half ? kept : other, e.begin, half);
    }
    reinterpret_cast<uint64_t*>(s_.kept[group_] + row)[half] = kept;
    meet(1 + group_);
  }

  // Scores to P M in 16 bits, not yet divided by the sum of a row of P, and that sum. Then
  // the largest score of a row, in base 2, is in largest_.
  __device__ void softmax(float (&x)[64], const ShortItem& item, uint32_t (&p)[32],
                          float (&sums)[2]) {
    const int column = thread_ % 4 * 2, row = thread_ / 32 * 16 + thread_ % 32 / 4;
    if (item.packed) {
      const Extent e[] = {extent_of(item, group_ * half_rows + row),
                          extent_of(item, group_ * half_rows + row + 8)};
#pragma unroll
      for (int i = 0; i < 64; ++i) {
        const int key = i / 4 * 8 + column + i % 2;
        if (key < e[i % 4 / 2].begin || key >= e[i % 4 / 2].end) x[i] = -INFINITY;
      }
    } else if (item.length < block_rows) {
#pragma unroll
      for (int i = 0; i < 64; ++i)
        if (i / 4 * 8 + column + i % 2 >= item.length) x[i] = -INFINITY;
    }
    const float scale = p_.sequences.scale * log2_e;
    float largest[] = {x[0], x[2]};
#pragma unroll
    for (int i = 1; i < 64; ++i) largest[i % 4 / 2] = fmaxf(largest[i % 4 / 2], x[i]);
    largest_[0] = quad_max(largest[0]) * scale;
    largest_[1] = quad_max(largest[1]) * scale;
    sums[0] = sums[1] = 0;
    uint4 kept[2] = {};
    if (dropout) {
      kept[0] = s_.kept[group_][row];
      kept[1] = s_.kept[group_][row + 8];
    }
#pragma unroll
    for (int i = 0; i < 64; i += 2) {
      const int r = i % 4 / 2, byte = i / 4;
      float e0 = exp2_fast(fmaf(x[i], scale, -largest_[r])),
            e1 = exp2_fast(fmaf(x[i + 1], scale, -largest_[r]));
      sums[r] += e0;
      sums[r] += e1;
      if (dropout) {
        const uint32_t words[] = {kept[r].x, kept[r].y, kept[r].z, kept[r].w};
        const uint32_t bits = words[byte / 4] >> (byte % 4 * 8 + column);
        e0 = bits & 1 ? e0 : 0;
        e1 = bits & 2 ? e1 : 0;
      }
      p[i / 2] = packed<T>(e0, e1);
    }
    sums[0] = quad_sum(sums[0]);
    sums[1] = quad_sum(sums[1]);
  }

  // The warpgroup's queries have been read: their memory takes its results on their way out.
  __device__ void write(const float (&out)[32], const float (&sums)[2], const ShortItem& item,
                        int slot) {
    const ShortSequences& q = p_.sequences;
    const int first = group_ * half_rows, rows = item.length - first;
    const int row = thread_ / 32 * 16 + thread_ % 32 / 4;
    const int64_t width = int64_t{q.heads} * head_dim;
    T* to = static_cast<T*>(p_.out) + (int64_t{item.row} + first) * width + item.column;
    const float factor = dropout ? q.dropout.keep_scale : 1.0F;
    write_rows(out, factor / sums[0], factor / sums[1], s_.q[slot] + group_ * half_bytes, to, width,
               1 + group_, rows);
    if (thread_ % 4 != 0) return;
    constexpr float log_2 = 1 / log2_e;
    float* stats = p_.stats + item.statistic + first + row;
    if (row < rows) stats[0] = (largest_[0] + __log2f(sums[0])) * log_2;
    if (row + 8 < rows) stats[8] = (largest_[1] + __log2f(sums[1])) * log_2;
  }

  const ShortForward& p_;
  Shared& s_;
  const int group_, thread_;
  const uint64_t seed_;
  float largest_[2];
};

template <typename T, bool dropout>
__global__ void __launch_bounds__(3 * warpgroup, 1)
    short_attention_forward_kernel(const __grid_constant__ ShortForward p) {
  extern __shared__ __align__(1024) uint8_t memory[];
  Shared& s = *reinterpret_cast<Shared*>(memory);
  const auto copy = [&](const ShortItem& i, int slot) {
    const uint32_t full = shared_address(s.full + slot);
    const int width = p.sequences.heads * head_dim;
    copy_box(shared_address(s.q[slot]), p.qkv, i.column, i.row, full);
    copy_box(shared_address(s.k[slot]), p.qkv, width + i.column, i.row, full);
    copy_box(shared_address(s.v[slot]), p.qkv, 2 * width + i.column, i.row, full);
  };
  take_roles([&] { init_barriers<slots>(s); },
             [&] { copy_items<slots>(p.sequences, s, 3 * tile_bytes, copy); },
             [&](int group) { Multiplier<T, dropout>(p, s, group).run(); });
}

template <typename T, bool dropout>
cudaError_t launch(const ShortForward& p, int sms, cudaStream_t stream) {
  return launch_blocks<Shared>(short_attention_forward_kernel<T, dropout>, p,
                               std::min(sms, p.sequences.count * p.sequences.heads), stream);
}

template <typename T>
cudaError_t launch(const ShortForward& p, int sms, cudaStream_t stream) {
  return p.sequences.dropout.threshold > 0 ? launch<T, true>(p, sms, stream)
                                           : launch<T, false>(p, sms, stream);
}

cudaError_t forward(const ShortForward& p, DType dtype, int sms, cudaStream_t stream) {
  return dtype == DType::bf16 ? launch<__nv_bfloat16>(p, sms, stream)
                              : launch<__half>(p, sms, stream);
}

const bool listed = [] {
  short_kernels.forward = forward;
  return true;
}();

}  // namespace
}  // namespace tally::train::cuda::hopper
