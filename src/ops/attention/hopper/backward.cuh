// dK, dV and the sums of dQ. A block of threads takes one block of keys of a head after another
// from a queue and loops over the queries that see them. One warpgroup copies. The other two have
// 64 keys each and compute scores transposed, keys down and queries across, so that P^T and dS^T
// are in registers in the form that the GEMMs for dV and dK take. Only dQ sums over all 128 keys:
// for it the two exchange dS through shared memory, and each sums 64 queries.
//
// The order of a turn keeps the matrix instructions busy. They run asynchronously, so behind each
// wait there should be others left to run. The next block's scores are started before this turn
// ends, and dQ is computed a turn late, so that no warpgroup waits for the other's dS while it has
// work of its own.
#pragma once

#include "src/ops/attention/hopper/backward_parts.cuh"

namespace tally::train::cuda::hopper {

// Barriers: `full` when what was copied or stored is there, `empty` when it has been read.
struct alignas(1024) Shared {
  uint8_t k[2][tile_bytes], v[2][tile_bytes];        // this block of keys and the next
  uint8_t q[2][tile_bytes], dout[2][tile_bytes];     // this block of queries and the next
  uint8_t ds[2][2][tile_bytes];                      // [turn][half of the queries][key][query]
  uint8_t staged[2][half_bytes];                     // each warpgroup's result on its way out
  KeptKeys<block_rows> kept;                         // each warp's keys by queries: a bit a key
  float stats[2][block_rows], delta[2][block_rows];  // loaded with q and dout
  uint64_t keys_full[2], keys_empty[2], q_full[2], q_empty[2], dout_full[2], dout_empty[2];
  uint64_t ds_full[2], ds_empty[2];
  int item[2];  // loaded with k and v; none: -1
};
static_assert(sizeof(Shared) <= most_shared);

// Block `keys` of head `head` of K and V, numbered over all sequences; the first block of queries
// that sees it.
struct Item {
  int head, keys, first;
  __device__ Item(const Backward& p, int item)
      : head(item / p.blocks), keys(item % p.blocks), first(p.causal ? keys : 0) {}
};

// The copying thread. A head's blocks of keys come in turn, those that most queries see first.
template <bool grouped>
__device__ inline void copy_all(const Backward& p, Shared& s) {
  const int items = p.batch * kv_heads<grouped>(p) * p.blocks, width = p.heads * head_dim;
  int turn = 0;
  for (int n = 0;; ++n) {
    const int item = static_cast<int>(atomicAdd(p.next_item, 1U)), b = n & 1;
    barrier_wait(at(s.keys_empty[b]), (n >> 1 & 1) ^ 1);
    s.item[b] = item < items ? item : -1;
    if (item >= items) return barrier_arrive(at(s.keys_full[b]));
    const Item i(p, item);
    const int kv = kv_heads<grouped>(p), batch = i.head / kv;
    const int kv_column = width + i.head % kv * head_dim;
    const int row = batch * p.tokens, key_row = row + i.keys * block_rows;
    barrier_expect(at(s.keys_full[b]), 2 * tile_bytes);
    copy_box(at(s.k[b]), p.qkv, kv_column, key_row, at(s.keys_full[b]));
    copy_box(at(s.v[b]), p.qkv, kv * head_dim + kv_column, key_row, at(s.keys_full[b]));
    for (int nth = 0; nth < heads_a_key<grouped>(p); ++nth) {
      const int head = i.head * heads_a_key<grouped>(p) + nth;  // Q's head
      const int column = head % p.heads * head_dim;
      for (int q = i.first; q < p.blocks; ++q, ++turn) {
        const int t = turn & 1, parity = (turn >> 1 & 1) ^ 1;
        const int64_t first = int64_t{head} * p.tokens + q * block_rows;
        constexpr int row_bytes = block_rows * static_cast<int>(sizeof(float));
        barrier_wait(at(s.q_empty[t]), parity);
        barrier_expect(at(s.q_full[t]), tile_bytes + row_bytes);
        copy_box(at(s.q[t]), p.qkv, column, row + q * block_rows, at(s.q_full[t]));
        copy_bytes(at(s.stats[t]), p.base2_stats + first, row_bytes, at(s.q_full[t]));
        barrier_wait(at(s.dout_empty[t]), parity);
        barrier_expect(at(s.dout_full[t]), tile_bytes + row_bytes);
        copy_box(at(s.dout[t]), p.dout, column, row + q * block_rows, at(s.dout_full[t]));
        copy_bytes(at(s.delta[t]), p.delta + first, row_bytes, at(s.dout_full[t]));
      }
    }
  }
}

// One of the two warpgroups that compute.
template <typename T, bool grouped, bool dropout>
class Multiplier : TurnOperands<T, dropout, block_rows> {
  using Turn = TurnOperands<T, dropout, block_rows>;

 public:
  __device__ Multiplier(const Backward& p, Shared& s, int group) : Turn(p, s.kept, group), s_(s) {}

  __device__ void run() {
    barrier_wait(at(s_.keys_full[0]), 0);
    if (s_.item[0] < 0) return;
    Item item(p_, s_.item[0]);
    const int heads = heads_a_key<grouped>(p_);
    int q = item.first, nth = 0, n = 0, turn = 0;  // nth: of the heads of Q
    bool keys_left = false;   // the dS still to be multiplied is of the previous block of keys
    float* dq_due = nullptr;  // destination of its dQ; null: there is none yet
    float scores[64], dk[32], dv[32];
    barrier_wait(at(s_.q_full[0]), 0);
    multiply_rows<T>(scores, s_.k[0], s_.q[0], group_);
    wgmma_wait<0>();
    wgmma_arrived(scores);
    for (;; ++turn) {
      const int t = turn & 1, parity = turn >> 1 & 1, b = n & 1;
      const uint64_t q_tile = wgmma_tile(at(s_.q[t])), dout_tile = wgmma_tile(at(s_.dout[t]));
      float dp[64];
      barrier_wait(at(s_.dout_full[t]), parity);
      multiply_rows<T>(dp, s_.v[b], s_.dout[t], group_);
      if (dropout) this->draw(item.head * heads + nth, q, item.keys);
      this->probabilities(scores, s_.stats[t], p_.causal && q == item.keys, 0);
      wgmma_wait<0>();
      wgmma_arrived(dp);
      uint32_t probability[32], ds[32];
      this->to_operands(scores, dp, s_.delta[t], probability, ds);
      const bool add = q != item.first || (grouped && nth > 0);
      add_keys(dv, probability, dout_tile, add);
      barrier_wait(at(s_.ds_empty[t]), parity ^ 1);
      store_ds(ds, t);
      add_keys(dk, ds, q_tile, add);
      fence_async_proxy();
      __syncwarp();
      if (thread_ % 32 == 0) barrier_arrive(at(s_.ds_full[t]));

      const bool last = q == p_.blocks - 1 && (!grouped || nth == heads - 1);
      wgmma_wait<1>();
      wgmma_arrived(dv);
      barrier_wait(at(s_.ds_full[t ^ 1]), (turn - 1) >> 1 & 1);
      float dq[32];
      multiply_ds(dq, t ^ 1, keys_left ? b ^ 1 : b);
      if (last && keys_left) {  // keys of one turn: the next ones come to where those before lay
        wgmma_wait<0>();
        __syncwarp();
        if (thread_ % 32 == 0) barrier_arrive(at(s_.keys_empty[b ^ 1]));
      }
      int next = 0, next_b = b;
      if (last) {
        next_b = b ^ 1;
        barrier_wait(at(s_.keys_full[next_b]), (n + 1) >> 1 & 1);
        next = s_.item[next_b];
      }
      // Called after the very last block, it waits for data that is there and unused.
      if (next >= 0) barrier_wait(at(s_.q_full[t ^ 1]), (turn + 1) >> 1 & 1);
      multiply_rows<T>(scores, s_.k[next_b], s_.q[t ^ 1], group_);
      wgmma_wait<1>();
      wgmma_arrived(dk);
      wgmma_arrived(dq);
      __syncwarp();
      if (thread_ % 32 == 0) {
        barrier_arrive(at(s_.dout_empty[t]));
        barrier_arrive(at(s_.q_empty[t]));
        if (dq_due) barrier_arrive(at(s_.ds_empty[t ^ 1]));
        if (keys_left && !last) barrier_arrive(at(s_.keys_empty[b ^ 1]));
      }
      if (dq_due) this->add_queries(dq_due, dq);
      wgmma_wait<0>();
      wgmma_arrived(scores);
      dq_due = dq_sums(item.head * heads + nth, q);
      keys_left = last;
      ++q;
      if (grouped && q == p_.blocks) {
        q = item.first;
        ++nth;
      }
      if (!last) continue;
      write_keys(item, dk, dv);
      if (next < 0) break;
      item = Item(p_, next);
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
  // sums[64 keys, 64] += rows^T queries, rows^T in registers; written where `add` is false.
  __device__ static void add_keys(float (&sums)[32], const uint32_t (&rows)[32], uint64_t queries,
                                  bool add) {
    wgmma_fence();
#pragma unroll
    for (int k = 0; k < 8; ++k)
      Wgmma<T>::from_registers(sums, rows + 4 * k, queries + 128 * k, k > 0 || add);
    wgmma_commit();
  }

  __device__ void store_ds(const uint32_t (&ds)[32], int t) {
    const int lane = thread_ % 32, key = group_ * half_rows + thread_ / 32 * 16 + lane % 16;
#pragma unroll
    for (int k = 0; k < 8; ++k) {  // 16 queries at a time
      const int c = 2 * (k % 4) + lane / 16;
      store_matrices(shared_address(s_.ds[t][k / 4]) + key * 128 + ((c ^ (key % 8)) << 4),
                     ds + 4 * k);
    }
  }

  // dq[64 queries of this warpgroup, 64] = dS K over all 128 keys
  __device__ void multiply_ds(float (&dq)[32], int t, int b) {
    const uint64_t a = wgmma_tile(shared_address(s_.ds[t][group_]));
    const uint64_t k_tile = wgmma_tile(shared_address(s_.k[b]));
    wgmma_fence();
#pragma unroll
    for (int k = 0; k < 8; ++k) Wgmma<T>::transposed(dq, a + 128 * k, k_tile + 128 * k, k > 0);
    wgmma_commit();
  }

  __device__ float* dq_sums(int head, int q) const {
    return p_.dq_sums + ((int64_t{head} * p_.blocks + q) * 2 + group_) * half_rows * head_dim;
  }
  __device__ void write_keys(const Item& item, const float (&dk)[32], const float (&dv)[32]) {
    const int kv = kv_heads<grouped>(p_), batch = item.head / kv, head = item.head % kv;
    const int64_t width = int64_t{p_.heads} * head_dim, kv_width = int64_t{kv} * head_dim;
    const int64_t row = width + 2 * kv_width;
    T* to = static_cast<T*>(p_.dqkv) + width + head * head_dim +
            (int64_t{batch} * p_.tokens + item.keys * block_rows + group_ * half_rows) * row;
    write_rows(dv, 1.0F, 1.0F, s_.staged[group_], to + kv_width, row, 1 + group_);
    write_rows(dk, p_.scale, p_.scale, s_.staged[group_], to, row, 1 + group_);
  }

  using Turn::group_;
  using Turn::p_;
  using Turn::thread_;
  Shared& s_;
};

template <typename T, bool grouped, bool dropout>
__global__ void __launch_bounds__(3 * warpgroup, 1)
    attention_backward_kernel(const __grid_constant__ Backward p) {
  extern __shared__ __align__(1024) uint8_t memory[];
  Shared& s = *reinterpret_cast<Shared*>(memory);
  const auto begin = [&] {
    if (shared_address(&s) % alignof(Shared) != 0) __trap();
    for (int i = 0; i < 2; ++i) {
      for (uint64_t* one : {s.keys_full, s.q_full, s.dout_full})
        barrier_init(shared_address(one + i), 1);
      for (uint64_t* all : {s.keys_empty, s.q_empty, s.dout_empty, s.ds_empty})
        barrier_init(shared_address(all + i), 8);      // warps
      barrier_init(shared_address(s.ds_full + i), 8);  // warps
    }
  };
  take_roles(
      begin, [&] { copy_all<grouped>(p, s); },
      [&](int group) { Multiplier<T, grouped, dropout>(p, s, group).run(); });
}

}  // namespace tally::train::cuda::hopper
