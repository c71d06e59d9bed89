// The backward kernel of kernels.h for heads of 128, for compute capability 9.0 only.
//
// As backward.cuh, with these differences. A turn has 64 queries, so that registers hold dK and dV
// of 64 keys (64 each), scores, dP and dQ (32 each), P and dS. Each warpgroup computes 64 of dQ's
// 128 columns. Shared memory has one V: it is read first in a turn, and K last, so that the next V
// arrives while the last turn ends.
#include <algorithm>

#include "src/ops/attention/hopper/backward_parts.cuh"
#include "src/ops/attention/hopper/wide.cuh"

namespace tally::train::cuda::hopper {
namespace {

constexpr int turn_rows = wide_turn_rows;
constexpr int turn_panel = turn_rows * head_dim * 2, turn_bytes = panels * turn_panel;
constexpr int ds_bytes = block_rows * turn_rows * 2;
constexpr int turns_a_block = block_rows / turn_rows;  // so that no block has one turn only

// Barriers: `full` when what was copied or stored is there, `empty` when it has been read.
struct alignas(1024) Shared {
  uint8_t k[2][wide_bytes], v[wide_bytes];         // this block of keys, and the next K
  uint8_t q[2][turn_bytes], dout[2][turn_bytes];   // this turn and the next
  uint8_t ds[2][ds_bytes];                         // [turn][key][query]
  uint8_t staged[2][half_bytes];                   // each warpgroup's result on its way out
  KeptKeys<turn_rows> kept;                        // each warp's keys by queries: a bit a key
  float stats[2][turn_rows], delta[2][turn_rows];  // loaded with q and dout
  uint64_t k_full[2], k_empty[2], v_full, v_empty;
  uint64_t q_full[2], q_empty[2], dout_full[2], dout_empty[2], ds_full[2], ds_empty[2];
  int item[2];  // loaded with k; none: -1
};
static_assert(sizeof(Shared) <= most_shared);

// Block `keys` of head `head` of K and V, numbered over all sequences; the first turn that sees it.
// Heads whose blocks keep all SMs busy run together; of those the blocks that most queries see come
// first.
struct Item {
  int head, keys, first;
  template <bool grouped>
  __device__ static Item of(const Backward& p, int item) {
    const int all = p.batch * kv_heads<grouped>(p), group = item / (p.group * p.blocks);
    const int before = group * p.group, heads = min(p.group, all - before);
    const int in_group = item - before * p.blocks, keys = in_group / heads;
    return {before + in_group - keys * heads, keys, p.causal ? keys * turns_a_block : 0};
  }
};

// A turn's rows of a head. (The map's boxes have as many rows.)
__device__ void copy_turn(uint32_t to, const CUtensorMap& map, int column, int row,
                          uint32_t barrier) {
#pragma unroll
  for (int i = 0; i < panels; ++i)
    copy_box(to + i * turn_panel, map, column + i * head_dim, row, barrier);
}
// A block's rows of a head, half of them at a time.
__device__ void copy_keys(uint32_t to, const CUtensorMap& map, int column, int row,
                          uint32_t barrier) {
#pragma unroll
  for (int i = 0; i < panels; ++i) {
    copy_box(to + i * panel_bytes, map, column + i * head_dim, row, barrier);
    copy_box(to + i * panel_bytes + half_bytes, map, column + i * head_dim, row + half_rows,
             barrier);
  }
}

// The copying thread.
template <bool grouped>
__device__ void copy_all(const Backward& p, Shared& s) {
  const int items = p.batch * kv_heads<grouped>(p) * p.blocks, width = p.heads * wide_head_dim;
  const int turns = p.blocks * turns_a_block;
  int turn = 0;
  for (int n = 0;; ++n) {
    const int item = static_cast<int>(atomicAdd(p.next_item, 1U)), b = n & 1;
    barrier_wait(at(s.k_empty[b]), (n >> 1 & 1) ^ 1);
    s.item[b] = item < items ? item : -1;
    if (item >= items) return barrier_arrive(at(s.k_full[b]));
    const Item i = Item::of<grouped>(p, item);
    const int kv = kv_heads<grouped>(p), batch = i.head / kv;
    const int kv_column = width + i.head % kv * wide_head_dim;
    const int row = batch * p.tokens, key_row = row + i.keys * block_rows;
    barrier_expect(at(s.k_full[b]), wide_bytes);
    copy_keys(at(s.k[b]), p.qkv, kv_column, key_row, at(s.k_full[b]));
    bool value_due = true;
    for (int nth = 0; nth < heads_a_key<grouped>(p); ++nth) {
      const int head = i.head * heads_a_key<grouped>(p) + nth;  // Q's head
      const int column = head % p.heads * wide_head_dim;
      for (int q = i.first; q < turns; ++q, ++turn) {
        const int t = turn & 1, parity = (turn >> 1 & 1) ^ 1;
        const int64_t first = int64_t{head} * p.tokens + q * turn_rows;
        constexpr int row_bytes = turn_rows * static_cast<int>(sizeof(float));
        barrier_wait(at(s.q_empty[t]), parity);
        barrier_expect(at(s.q_full[t]), turn_bytes + row_bytes);
        copy_turn(at(s.q[t]), p.qkv, column, row + q * turn_rows, at(s.q_full[t]));
        copy_bytes(at(s.stats[t]), p.base2_stats + first, row_bytes, at(s.q_full[t]));
        if (value_due) {  // behind the first Q, whose scores the turn before starts
          barrier_wait(at(s.v_empty), (n & 1) ^ 1);
          barrier_expect(at(s.v_full), wide_bytes);
          copy_keys(at(s.v), p.qkv, kv * wide_head_dim + kv_column, key_row, at(s.v_full));
          value_due = false;
        }
        barrier_wait(at(s.dout_empty[t]), parity);
        barrier_expect(at(s.dout_full[t]), turn_bytes + row_bytes);
        copy_turn(at(s.dout[t]), p.dout, column, row + q * turn_rows, at(s.dout_full[t]));
        copy_bytes(at(s.delta[t]), p.delta + first, row_bytes, at(s.dout_full[t]));
      }
    }
  }
}

// One of the two warpgroups that compute.
template <typename T, bool grouped, bool dropout>
class Multiplier : TurnOperands<T, dropout, turn_rows> {
  using Turn = TurnOperands<T, dropout, turn_rows>;

 public:
  __device__ Multiplier(const Backward& p, Shared& s, int group) : Turn(p, s.kept, group), s_(s) {}

  __device__ __forceinline__ void run() {
    barrier_wait(at(s_.k_full[0]), 0);
    if (s_.item[0] < 0) return;
    Item item = Item::of<grouped>(p_, s_.item[0]);
    const int heads = heads_a_key<grouped>(p_), turns = p_.blocks * turns_a_block;
    int q = item.first, nth = 0, n = 0, turn = 0;  // nth: of the heads of Q
    bool keys_left = false;   // the dS still to be multiplied is of the previous block of keys
    float* dq_due = nullptr;  // destination of its dQ; null: there is none yet
    float scores[32], dk[64], dv[64];
    barrier_wait(at(s_.q_full[0]), 0);
    multiply_turn(scores, s_.k[0], s_.q[0]);
    wgmma_wait<0>();
    wgmma_arrived(scores);
    for (;; ++turn) {
      const int t = turn & 1, parity = turn >> 1 & 1, b = n & 1;
      const bool begins = q == item.first && (!grouped || nth == 0),
                 last = q == turns - 1 && (!grouped || nth == heads - 1);
      float dp[32];
      if (begins) barrier_wait(at(s_.v_full), n & 1);
      barrier_wait(at(s_.dout_full[t]), parity);
      multiply_turn(dp, s_.v, s_.dout[t]);
      if (dropout) this->draw(item.head * heads + nth, q, item.keys);
      const int ahead = q - item.keys * turns_a_block;  // offset from the first key, in turns
      this->probabilities(scores, s_.stats[t], p_.causal && ahead < turns_a_block,
                          ahead * turn_rows);
      wgmma_wait<0>();
      wgmma_arrived(dp);
      if (last) arrive(s_.v_empty);
      uint32_t probability[16], ds[16];
      this->to_operands(scores, dp, s_.delta[t], probability, ds);
      add_keys(dv, probability, wide_columns(at(s_.dout[t]), turn_panel), !begins);
      barrier_wait(at(s_.ds_empty[t]), parity ^ 1);
      store_ds(ds, t);
      add_keys(dk, ds, wide_columns(at(s_.q[t]), turn_panel), !begins);
      fence_async_proxy();
      arrive(s_.ds_full[t]);

      barrier_wait(at(s_.ds_full[t ^ 1]), (turn - 1) >> 1 & 1);
      float dq[32];
      multiply_ds(dq, t ^ 1, keys_left ? b ^ 1 : b);
      wgmma_wait<1>();  // so that the next scores find registers
      wgmma_arrived(dv);
      wgmma_arrived(dk);
      int next = 0, next_b = b;
      if (last) {
        next_b = b ^ 1;
        barrier_wait(at(s_.k_full[next_b]), (n + 1) >> 1 & 1);
        next = s_.item[next_b];
      }
      // Called after the very last turn, it waits for data that is there and unused.
      if (next >= 0) barrier_wait(at(s_.q_full[t ^ 1]), (turn + 1) >> 1 & 1);
      multiply_turn(scores, s_.k[next_b], s_.q[t ^ 1]);
      wgmma_wait<1>();
      wgmma_arrived(dq);
      __syncwarp();
      if (thread_ % 32 == 0) {
        barrier_arrive(at(s_.dout_empty[t]));
        barrier_arrive(at(s_.q_empty[t]));
        if (dq_due) barrier_arrive(at(s_.ds_empty[t ^ 1]));
        if (keys_left) barrier_arrive(at(s_.k_empty[b ^ 1]));
      }
      if (dq_due) this->add_queries(dq_due, dq);
      wgmma_wait<0>();
      wgmma_arrived(scores);
      dq_due = dq_sums(item.head * heads + nth, q);
      keys_left = last;
      ++q;
      if (grouped && q == turns) {
        q = item.first;
        ++nth;
      }
      if (!last) continue;
      write_keys(item, dk, dv);
      if (next < 0) break;
      item = Item::of<grouped>(p_, next);
      q = item.first;
      nth = 0;
      ++n;
    }
    float dq[32];
    barrier_wait(at(s_.ds_full[turn & 1]), turn >> 1 & 1);
    multiply_ds(dq, turn & 1, n & 1);
    wgmma_wait<0>();
    wgmma_arrived(dq);
    this->add_queries(dq_due, dq);
  }

 private:
  // Once a warp.
  __device__ void arrive(uint64_t& barrier) {
    __syncwarp();
    if (thread_ % 32 == 0) barrier_arrive(at(barrier));
  }

  // sums[64 keys of this warpgroup, 64 queries] = (K or V)(Q or dO)^T
  __device__ __forceinline__ void multiply_turn(float (&sums)[32], const uint8_t* keys,
                                                const uint8_t* queries) {
    const uint64_t a = wgmma_tile(shared_address(keys) + group_ * half_bytes),
                   b = wgmma_tile(shared_address(queries));
    wgmma_fence();
#pragma unroll
    for (int k = 0; k < 8; ++k)
      Wgmma<T>::scores(sums, a + k / 4 * (panel_bytes >> 4) + k % 4 * 2,
                       b + k / 4 * (turn_panel >> 4) + k % 4 * 2, k > 0);
    wgmma_commit();
  }

  // sums[64 keys, 128] += rows^T queries, rows^T in registers; written where `add` is false.
  __device__ static __forceinline__ void add_keys(float (&sums)[64], const uint32_t (&rows)[16],
                                                  uint64_t queries, bool add) {
    wgmma_fence();
#pragma unroll
    for (int k = 0; k < 4; ++k)
      Wgmma<T>::from_registers(sums, rows + 4 * k, queries + 128 * k, k > 0 || add);
    wgmma_commit();
  }

  __device__ void store_ds(const uint32_t (&ds)[16], int t) {
    const int lane = thread_ % 32, key = group_ * half_rows + thread_ / 32 * 16 + lane % 16;
#pragma unroll
    for (int k = 0; k < 4; ++k) {  // 16 queries at a time
      const int c = 2 * k + lane / 16;
      store_matrices(at(s_.ds[t]) + key * 128 + ((c ^ (key % 8)) << 4), ds + 4 * k);
    }
  }

  // dq[64 queries, 64 columns of this warpgroup] = dS K over all 128 keys
  __device__ __forceinline__ void multiply_ds(float (&dq)[32], int t, int b) {
    const uint64_t a = wgmma_tile(at(s_.ds[t]));
    const uint64_t k_panel = wgmma_tile(at(s_.k[b]) + group_ * panel_bytes);
    wgmma_fence();
#pragma unroll
    for (int k = 0; k < 8; ++k) Wgmma<T>::transposed(dq, a + 128 * k, k_panel + 128 * k, k > 0);
    wgmma_commit();
  }

  __device__ float* dq_sums(int head, int q) const {
    return p_.dq_sums + ((int64_t{head} * p_.blocks * turns_a_block + q) * panels + group_) *
                            turn_rows * head_dim;
  }
  __device__ void write_keys(const Item& item, const float (&dk)[64], const float (&dv)[64]) {
    const int kv = kv_heads<grouped>(p_), batch = item.head / kv, head = item.head % kv;
    const int64_t width = int64_t{p_.heads} * wide_head_dim, kv_width = int64_t{kv} * wide_head_dim;
    const int64_t row = width + 2 * kv_width;
    T* to = static_cast<T*>(p_.dqkv) + width + head * wide_head_dim +
            (int64_t{batch} * p_.tokens + item.keys * block_rows + group_ * half_rows) * row;
#pragma unroll
    for (int i = 0; i < panels; ++i) {
      write_rows(dv + 32 * i, 1.0F, 1.0F, s_.staged[group_], to + kv_width + i * head_dim, row,
                 1 + group_);
      write_rows(dk + 32 * i, p_.scale, p_.scale, s_.staged[group_], to + i * head_dim, row,
                 1 + group_);
    }
  }

  using Turn::group_;
  using Turn::p_;
  using Turn::thread_;
  Shared& s_;
};

template <typename T, bool grouped, bool dropout>
__global__ void __launch_bounds__(3 * warpgroup, 1)
    attention_wide_backward_kernel(const __grid_constant__ Backward p) {
  extern __shared__ __align__(1024) uint8_t memory[];
  Shared& s = *reinterpret_cast<Shared*>(memory);
  const auto begin = [&] {
    if (shared_address(&s) % alignof(Shared) != 0) __trap();
    constexpr int warps = 8;
    for (int i = 0; i < 2; ++i) {
      for (uint64_t* one : {s.k_full, s.q_full, s.dout_full})
        barrier_init(shared_address(one + i), 1);
      for (uint64_t* all : {s.k_empty, s.q_empty, s.dout_empty, s.ds_empty, s.ds_full})
        barrier_init(shared_address(all + i), warps);
    }
    barrier_init(shared_address(&s.v_full), 1);
    barrier_init(shared_address(&s.v_empty), warps);
  };
  take_roles(
      begin, [&] { copy_all<grouped>(p, s); },
      [&](int group) { Multiplier<T, grouped, dropout>(p, s, group).run(); });
}

template <typename T, bool grouped, bool dropout>
cudaError_t launch(const Backward& p, int blocks, cudaStream_t stream) {
  return launch_blocks<Shared>(attention_wide_backward_kernel<T, grouped, dropout>, p, blocks,
                               stream);
}
template <typename T>
cudaError_t launch(const Backward& p, int blocks, cudaStream_t stream) {
  if (p.dropout.threshold > 0)
    return p.kv_heads < p.heads ? launch<T, true, true>(p, blocks, stream)
                                : launch<T, false, true>(p, blocks, stream);
  return p.kv_heads < p.heads ? launch<T, true, false>(p, blocks, stream)
                              : launch<T, false, false>(p, blocks, stream);
}

cudaError_t multiply(const Backward& p, DType dtype, int sms, cudaStream_t stream) {
  const int blocks = std::min(sms, p.batch * p.kv_heads * p.blocks);
  return dtype == DType::bf16 ? launch<__nv_bfloat16>(p, blocks, stream)
                              : launch<__half>(p, blocks, stream);
}

const bool listed = [] {
  wide_kernels.multiply = multiply;
  return true;
}();

}  // namespace
}  // namespace tally::train::cuda::hopper
