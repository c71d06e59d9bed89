// The backward kernel of short_kernels.h, for compute capability 9.0 only. Each of the two
// computing warpgroups has 64 keys and all queries, with scores transposed as in
// backward.cuh; for dQ, which sums over all keys, they exchange dS through shared memory,
// and each has 64 queries.
#include <algorithm>

#include "src/ops/attention/hopper/short.cuh"

namespace tally::train::cuda::hopper {
namespace {

constexpr int slots = 2;

struct alignas(1024) Shared {
  uint8_t q[slots][tile_bytes], k[slots][tile_bytes], v[slots][tile_bytes];
  uint8_t out[slots][tile_bytes], dout[slots][tile_bytes];
  uint8_t ds[2][tile_bytes];      // [half of the queries][key][query]
  uint8_t staged[2][half_bytes];  // each warpgroup's result on its way out
  float2 rows[block_rows];        // each query's stats / ln 2 and delta
  uint2 kept[2][block_rows];      // for each warpgroup's keys and each query: a bit a key
  uint64_t full[slots], empty[slots];
  ShortItem items[slots];
};
static_assert(sizeof(Shared) <= most_shared);

// A barrier for both computing warpgroups.
__device__ void meet_all() {
  asm volatile("bar.sync 3, 256;" ::: "memory");
}

template <typename T, bool dropout>
class Multiplier {
 public:
  __device__ Multiplier(const ShortBackward& p, Shared& s, int group)
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
      float scores[64], dp[64];
      multiply_rows<T>(scores, s_.k[slot], s_.q[slot], group_);
      multiply_rows<T>(dp, s_.v[slot], s_.dout[slot], group_);
      prepare(item, slot);
      meet_all();
      wgmma_wait<1>();
      wgmma_arrived(scores);
      probabilities(scores, item);
      wgmma_wait<0>();
      wgmma_arrived(dp);
      uint32_t probability[32], ds[32];
      to_operands(scores, dp, probability, ds);
      float dv[32], dk[32], dq[32];
      add_keys(dv, probability, wgmma_tile(at(s_.dout[slot])));
      store_ds(ds);
      add_keys(dk, ds, wgmma_tile(at(s_.q[slot])));
      fence_async_proxy();
      meet_all();
      multiply_ds(dq, slot);
      wgmma_wait<2>();
      wgmma_arrived(dv);
      const int64_t width = int64_t{p_.sequences.heads} * head_dim;
      write(dv, 1.0F, 2 * width, item);
      wgmma_wait<1>();
      wgmma_arrived(dk);
      write(dk, p_.sequences.scale, width, item);
      wgmma_wait<0>();
      wgmma_arrived(dq);
      __syncwarp();
      if (thread_ % 32 == 0) barrier_arrive(at(s_.empty[slot]));
      write(dq, p_.sequences.scale, 0, item);
    }
  }

 private:
  // Statistics and delta = rowsum(dO O) of 64 queries, two threads each; dropout's mask of the
  // warpgroup's keys, a query a thread. A query beyond the sequence sees nothing.
  __device__ void prepare(const ShortItem& item, int slot) {
    const int row = group_ * half_rows + thread_ / 2, half = thread_ % 2;
    const bool inside = row < item.length;
    const float stats = inside ? p_.stats[item.statistic + row] * log2_e : INFINITY;
    float sum = 0;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int from = row * 128 + (((4 * half + i) ^ (row % 8)) << 4);
      float x[8], y[8];
      widen(load<T, 8>(reinterpret_cast<const T*>(s_.out[slot] + from)), x);
      widen(load<T, 8>(reinterpret_cast<const T*>(s_.dout[slot] + from)), y);
#pragma unroll
      for (int k = 0; k < 8; ++k) sum = fmaf(x[k], y[k], sum);
    }
    sum += __shfl_xor_sync(0xffffffffU, sum, 1);
    if (half == 0) s_.rows[row] = {stats, inside ? sum : 0};
    if (!dropout || thread_ >= item.length || group_ * half_rows >= item.length) return;
    const Extent e = extent_of(item, thread_);
    const int keys = e.end - e.begin;
    const auto kept_from = [&](int part) {
      return kept_of_document(seed_, p_.sequences, item.statistic + thread_, part);
    };
    const uint64_t low = group_ == 0 || e.begin > 0 ? kept_from(0) : 0,
                   high = group_ == 1 && keys > half_rows ? kept_from(1) : 0;
    *reinterpret_cast<uint64_t*>(s_.kept[group_] + thread_) =
        kept_of_tile(low, high, e.begin, group_);
  }

  // Computes P from scores.
  __device__ void probabilities(float (&x)[64], const ShortItem& item) {
    const int column = thread_ % 4 * 2,
              key = group_ * half_rows + thread_ / 32 * 16 + thread_ % 32 / 4;
    const float scale = p_.sequences.scale * log2_e;
    const bool low = key < item.length, high = key + 8 < item.length;
#pragma unroll
    for (int j = 0; j < 16; ++j) {
      const float4 m = *reinterpret_cast<const float4*>(s_.rows + 8 * j + column);
      x[4 * j] = low ? exp2_fast(fmaf(x[4 * j], scale, -m.x)) : 0;
      x[4 * j + 1] = low ? exp2_fast(fmaf(x[4 * j + 1], scale, -m.z)) : 0;
      x[4 * j + 2] = high ? exp2_fast(fmaf(x[4 * j + 2], scale, -m.x)) : 0;
      x[4 * j + 3] = high ? exp2_fast(fmaf(x[4 * j + 3], scale, -m.z)) : 0;
    }
    if (!item.packed) return;
    const Extent e[] = {extent_of(item, key), extent_of(item, key + 8)};
#pragma unroll
    for (int i = 0; i < 64; ++i) {
      const int query = i / 4 * 8 + column + i % 2;
      if (query < e[i % 4 / 2].begin || query >= e[i % 4 / 2].end) x[i] = 0;
    }
  }

  // Converts P M and dS = P (M dP - delta) to 16 bits.
  __device__ void to_operands(const float (&x)[64], const float (&dp)[64],
                              uint32_t (&probability)[32], uint32_t (&ds)[32]) {
    const int column = thread_ % 4 * 2, warp = thread_ / 32, bit = thread_ % 32 / 4;
    const float factor = dropout ? p_.sequences.dropout.keep_scale : 1.0F;
    const auto* kept = reinterpret_cast<const uint16_t*>(s_.kept[group_]) + warp;
#pragma unroll
    for (int j = 0; j < 16; ++j) {
      const int query = 8 * j + column;
      const float4 d = *reinterpret_cast<const float4*>(s_.rows + query);
      float m[] = {factor, factor, factor, factor};
      if (dropout) {  // two bytes a query: its bits of the two keys
        const uint32_t first = kept[4 * query] >> bit, second = kept[4 * query + 4] >> bit;
        m[0] = first & 1 ? factor : 0;
        m[1] = second & 1 ? factor : 0;
        m[2] = first & 0x100 ? factor : 0;
        m[3] = second & 0x100 ? factor : 0;
      }
#pragma unroll
      for (int i = 0; i < 4; i += 2) {
        const float *a = x + 4 * j + i, *b = dp + 4 * j + i;
        probability[(4 * j + i) / 2] = packed<T>(a[0] * m[i], a[1] * m[i + 1]);
        ds[(4 * j + i) / 2] =
            packed<T>(a[0] * fmaf(b[0], m[i], -d.y), a[1] * fmaf(b[1], m[i + 1], -d.w));
      }
    }
  }

  // sums[64 keys, 64] = rows^T queries, rows^T in registers
  __device__ static void add_keys(float (&sums)[32], const uint32_t (&rows)[32], uint64_t queries) {
    wgmma_fence();
#pragma unroll
    for (int k = 0; k < 8; ++k)
      Wgmma<T>::from_registers(sums, rows + 4 * k, queries + 128 * k, k > 0);
    wgmma_commit();
  }

  __device__ void store_ds(const uint32_t (&ds)[32]) {
    const int lane = thread_ % 32, key = group_ * half_rows + thread_ / 32 * 16 + lane % 16;
#pragma unroll
    for (int k = 0; k < 8; ++k) {  // 16 queries at a time
      const int c = 2 * (k % 4) + lane / 16;
      store_matrices(shared_address(s_.ds[k / 4]) + key * 128 + ((c ^ (key % 8)) << 4), ds + 4 * k);
    }
  }

  // dq[64 queries of this warpgroup, 64] = dS K over all 128 keys
  __device__ void multiply_ds(float (&dq)[32], int slot) {
    const uint64_t a = wgmma_tile(shared_address(s_.ds[group_])),
                   k_tile = wgmma_tile(shared_address(s_.k[slot]));
    wgmma_fence();
#pragma unroll
    for (int k = 0; k < 8; ++k) Wgmma<T>::transposed(dq, a + 128 * k, k_tile + 128 * k, k > 0);
    wgmma_commit();
  }

  // 64 keys' or queries' rows, at `part` columns of dqkv's rows.
  __device__ void write(const float (&sums)[32], float scale, int64_t part, const ShortItem& item) {
    const int first = group_ * half_rows;
    const int64_t row = 3 * int64_t{p_.sequences.heads} * head_dim;
    T* to = static_cast<T*>(p_.dqkv) + (int64_t{item.row} + first) * row + part + item.column;
    write_rows(sums, scale, scale, s_.staged[group_], to, row, 1 + group_, item.length - first);
  }

  const ShortBackward& p_;
  Shared& s_;
  const int group_, thread_;
  const uint64_t seed_;
};

template <typename T, bool dropout>
__global__ void __launch_bounds__(3 * warpgroup, 1)
    short_attention_backward_kernel(const __grid_constant__ ShortBackward p) {
  extern __shared__ __align__(1024) uint8_t memory[];
  Shared& s = *reinterpret_cast<Shared*>(memory);
  const auto copy = [&](const ShortItem& i, int slot) {
    const uint32_t full = shared_address(s.full + slot);
    const int width = p.sequences.heads * head_dim;
    copy_box(shared_address(s.k[slot]), p.qkv, width + i.column, i.row, full);
    copy_box(shared_address(s.q[slot]), p.qkv, i.column, i.row, full);
    copy_box(shared_address(s.v[slot]), p.qkv, 2 * width + i.column, i.row, full);
    copy_box(shared_address(s.dout[slot]), p.dout, i.column, i.row, full);
    copy_box(shared_address(s.out[slot]), p.out, i.column, i.row, full);
  };
  take_roles([&] { init_barriers<slots>(s); },
             [&] { copy_items<slots>(p.sequences, s, 5 * tile_bytes, copy); },
             [&](int group) { Multiplier<T, dropout>(p, s, group).run(); });
}

template <typename T, bool dropout>
cudaError_t launch(const ShortBackward& p, int sms, cudaStream_t stream) {
  return launch_blocks<Shared>(short_attention_backward_kernel<T, dropout>, p,
                               std::min(sms, p.sequences.count * p.sequences.heads), stream);
}

template <typename T>
cudaError_t launch(const ShortBackward& p, int sms, cudaStream_t stream) {
  return p.sequences.dropout.threshold > 0 ? launch<T, true>(p, sms, stream)
                                           : launch<T, false>(p, sms, stream);
}

cudaError_t backward(const ShortBackward& p, DType dtype, int sms, cudaStream_t stream) {
  return dtype == DType::bf16 ? launch<__nv_bfloat16>(p, sms, stream)
                              : launch<__half>(p, sms, stream);
}

const bool listed = [] {
  short_kernels.backward = backward;
  return true;
}();

}  // namespace
}  // namespace tally::train::cuda::hopper
