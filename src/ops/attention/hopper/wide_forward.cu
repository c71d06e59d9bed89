// The forward kernel of kernels.h for heads of 128, for compute capability 9.0 only.
//
// As forward.cu, with these differences. Registers hold one step's scores, its P and the P of the
// step before, and 128 columns of output: 64 + 32 + 32 + 64 a thread. The next step's scores start
// as soon as this one's exponentials are done, and this step's P V behind them, so that both run
// during the next exponentials.
//
// A block of 128 queries reads 64 KB of K and V in 2,048 cycles of tensor cores: as much as L2 gives
// to all SMs at once. Where two heads of Q have one head of K and V, two SMs (a cluster) take them
// in step, and each copies one half of a row of K and V to both.
#include <algorithm>
#include <cstdlib>

#include "src/ops/attention/hopper/wide.cuh"

namespace tally::train::cuda::hopper {
namespace {

constexpr int slots = 2;  // for blocks of K, of V and of queries
// Descriptions of blocks of queries. One is needed until that block is written; by then at most
// three more are described.
constexpr int kept = 2 * slots;
constexpr int tickets = 8;  // places in the queue on their way to the other SM of a pair
constexpr int warp_rows = store_rows, warp_bytes = warp_rows * wide_head_dim * 2;

// A block of queries of a head.
struct alignas(16) Item {
  int steps;   // blocks of keys; negative: there are no more items
  int column;  // column of Q in qkv, and of out
  int row;     // row of qkv and out
  int stats;   // the first one's index
};

// Barriers: `full` when what was copied is there, `empty` when it has been read.
struct alignas(1024) Shared {
  uint8_t k[slots][wide_bytes], v[slots][wide_bytes], q[slots][wide_bytes];
  uint8_t staged[8][warp_bytes];  // each warp's result on its way out
  uint4 mask[8][warp_rows];       // for each warp's queries: a bit a key of the step
  uint64_t k_full[slots], k_empty[slots], v_full[slots], v_empty[slots];
  uint64_t q_full[slots], q_empty[slots], ticket_full[tickets];
  unsigned ticket[tickets];
  Item items[kept];
};
static_assert(sizeof(Shared) <= most_shared);

template <typename Place>
__device__ uint32_t at(const Place& place) {
  return shared_address(&place);
}

// Heads whose K and V fit L2 together run together; of those the blocks that see most keys come
// first. The two SMs of a pair have neighbouring heads.
template <bool causal, bool pair>
__device__ Item describe(const Forward& p, int* head, int item) {
  constexpr int unit = pair ? 2 : 1;
  const int all = p.batch * p.heads / unit, together = (p.group + unit - 1) / unit;
  const int group = item / (together * p.blocks);
  const int first = group * together, heads = min(together, all - first);
  const int in_group = item - first * p.blocks, nth = in_group / heads;
  *head = (first + in_group - nth * heads) * unit + (pair ? static_cast<int>(blockIdx.x % 2) : 0);
  const int block = p.blocks - 1 - nth, row = block * block_rows;
  return {causal ? block + 1 : p.blocks, *head % p.heads * wide_head_dim,
          *head / p.heads * p.tokens + row, *head * p.tokens + row};
}

// The copying thread.
template <bool causal, bool pair>
class Copier {
 public:
  __device__ Copier(const Forward& p, Shared& s) : p_(p), s_(s) {}

  __device__ void run() {
    constexpr int unit = pair ? 2 : 1;
    const int items = p_.batch * p_.heads / unit * p_.blocks;
    const int width = p_.heads * wide_head_dim, kv_width = p_.kv_heads * wide_head_dim;
    const int heads_a_key = p_.heads / p_.kv_heads;
    auto item = static_cast<int>(blockIdx.x / unit);
    int step = 0;
    for (int n = 0;; ++n) {
      const int slot = n % slots;
      const unsigned next = item < items ? draw(n) : 0;  // long before it is needed
      barrier_wait(at(s_.q_empty[slot]), (n / slots & 1) ^ 1);
      if (item >= items) {
        s_.items[n % kept].steps = -1;
        return barrier_arrive(at(s_.q_full[slot]));
      }
      int head = 0;
      const Item i = describe<causal, pair>(p_, &head, item);
      s_.items[n % kept] = i;
      barrier_expect(at(s_.q_full[slot]), wide_bytes);
      copy_wide(at(s_.q[slot]), p_.qkv, i.column, i.row, at(s_.q_full[slot]));
      const int keys = head / p_.heads * p_.tokens;
      const int kv_column = width + head % p_.heads / heads_a_key * wide_head_dim;
#pragma unroll 1
      for (int b = i.steps - 1; b >= 0; --b, ++step) {
        const int t = step % slots, parity = (step / slots & 1) ^ 1, row = keys + b * block_rows;
        barrier_wait(at(s_.k_empty[t]), parity);
        copy_keys(at(s_.k[t]), kv_column, row, at(s_.k_full[t]));
        barrier_wait(at(s_.v_empty[t]), parity);
        copy_keys(at(s_.v[t]), kv_width + kv_column, row, at(s_.v_full[t]));
      }
      item = static_cast<int>(gridDim.x / unit + received(n, next));
    }
  }

 private:
  // The first SM of a pair draws for both.
  __device__ unsigned draw(int n) {
    if (pair && blockIdx.x % 2 == 1) {
      barrier_expect(at(s_.ticket_full[n % tickets]), sizeof(unsigned));
      return 0;
    }
    const unsigned next = atomicAdd(p_.next_item, 1U);
    if (pair) {
      s_.ticket[n % tickets] = next;
      send(peer(at(s_.ticket[n % tickets]), 1), next, peer(at(s_.ticket_full[n % tickets]), 1));
    }
    return next;
  }
  // At most two steps behind the first SM, so that at most four tickets are on their way.
  __device__ unsigned received(int n, unsigned drawn) {
    if (!pair) return drawn;
    if (blockIdx.x % 2 == 1) barrier_wait(at(s_.ticket_full[n % tickets]), n / tickets & 1);
    return *const_cast<volatile unsigned*>(&s_.ticket[n % tickets]);
  }
  __device__ void copy_keys(uint32_t to, int column, int row, uint32_t barrier) {
    barrier_expect(barrier, wide_bytes);
    if (!pair) return copy_wide(to, p_.qkv, column, row, barrier);
    const auto panel = static_cast<int>(blockIdx.x % 2);
    copy_box_to_pair(to + panel * panel_bytes, p_.qkv, column + panel * head_dim, row, barrier);
  }

  const Forward& p_;
  Shared& s_;
};

// Keeps the compiler from moving what these depend on behind what follows.
__device__ __forceinline__ void computed(uint32_t (&pairs)[32]) {
#pragma unroll
  for (uint32_t& pair : pairs) asm volatile("" : "+r"(pair)::"memory");
}

// The limit of a thread's sum of P over a step, above which P is taken relative to a larger score:
// P must fit T, and the output and its sum over many steps must fit float32.
template <typename T>
constexpr float most = 0x1p60F;
template <>
constexpr float most<__half> = 0x1p14F;

// The description of a step: 0 or more, these bits, and 8 times its item's index in Shared::items.
enum Step { first_step = 1, last_step = 2, second_half = 4, item_step = 8 };

// The state of a thread's two rows: the base-2 exponent that others are relative to, and the sums.
struct Rows {
  float from[2], sum[2];
};

// One of the two warpgroups that compute.
template <typename T, bool causal, bool dropout, bool pair, bool turns>
class Multiplier {
 public:
  __device__ Multiplier(const Forward& p, Shared& s, int group)
      : p_(p),
        s_(s),
        group_(group),
        warp_(static_cast<int>(threadIdx.x / 32 % 4)),
        lane_(static_cast<int>(threadIdx.x % 32)),
        scale_(p.scale * log2_e),
        seed_(dropout ? p.dropout.seed.get() : 0) {}

  __device__ __forceinline__ void run() {
    float out[64], x[64];
    uint32_t even[32], odd[32];  // P of every other step
    if (turns && group_ == 1) give_turn();
    int about = begin_scores(x);
    wgmma_wait<0>();
    wgmma_arrived(x);
    release(about);
    for (;;) {  // ptxas serializes if both ends meet at one point
      step(x, about, out, even);
      if (about < 0) return end(x, out);
      step(x, about, out, odd);
      if (about < 0) return end(x, out);
    }
  }

 private:
  // Starts the next step's scores behind everything that runs. Negative where there is none; then
  // nothing reads the scores.
  __device__ __forceinline__ int begin_scores(float (&scores)[64]) {
    int about = -1;
    if (steps_left_ == 0) {
      barrier_wait(at(s_.q_full[items_ % slots]), items_ / slots & 1);
      steps_left_ = s_.items[items_ % kept].steps;
      if (steps_left_ > 0) {
        ++items_;
        about = first_step;
      } else {
        steps_left_ = 0;
      }
    } else {
      about = 0;
    }
    // The warpgroups take turns at the half that sees less of the diagonal.
    const int item = items_ - 1, half = (group_ ^ item) & 1, t = begun_ % slots;
    if (about >= 0) {
      --steps_left_;
      about |= (steps_left_ == 0 ? last_step : 0) | half * second_half | item % kept * item_step;
      barrier_wait(at(s_.k_full[t]), begun_ / slots & 1);
      ++begun_;
    }
    wgmma_fence();
    multiply_wide_rows<T>(scores, at(s_.q[item % slots]) + half * half_bytes, at(s_.k[t]));
    wgmma_commit();
    return about;
  }

  __device__ __forceinline__ void free_keys(uint64_t& empty) {
    if (pair) {
      if (lane_ < 2) barrier_arrive_at(peer(at(empty), lane_));
    } else if (lane_ == 0) {
      barrier_arrive(at(empty));
    }
  }
  // Releases K after the scores begun last are computed, and Q after those of its last step.
  __device__ __forceinline__ void release(int about) {
    free_keys(s_.k_empty[(begun_ - 1) % slots]);
    if (lane_ == 0 && about & last_step) barrier_arrive(at(s_.q_empty[about / item_step % slots]));
  }

  // A warpgroup's two GEMMs follow each other, and the other's exponentials run meanwhile.
  __device__ __forceinline__ void take_turn() {
    asm volatile("bar.sync %0, 256;" ::"r"(1 + group_) : "memory");
  }
  __device__ __forceinline__ void give_turn() {
    asm volatile("bar.arrive %0, 256;" ::"r"(2 - group_) : "memory");
  }

  // Computes the step of x, whose scores are complete, into p; x becomes those of the next step.
  __device__ __forceinline__ void step(float (&x)[64], int& about, float (&out)[64],
                                       uint32_t (&p)[32]) {
    const bool first = about & first_step;
    const Rows before = rows_;
    if (first) begin_rows(x, about);
    float sums[2], shrink[2] = {1, 1};
    exponentials(x, p, sums);
    computed(p);
    const bool redo = too_large(sums);
    if (redo) again(x, p, sums, shrink);
    if (dropout) drop(p, about);  // here x holds nothing, so that registers are free
    rows_.sum[0] += sums[0];
    rows_.sum[1] += sums[1];
    if (turns) take_turn();
    const int next = begin_scores(x);
    wgmma_wait<1>();  // P V of the step before
    wgmma_arrived(out);
    if (done_ > 0) free_keys(s_.v_empty[(done_ - 1) % slots]);
    if (first && done_ > 0) write(out, before);
    if (redo && !first) {
#pragma unroll
      for (int i = 0; i < 64; ++i) out[i] *= shrink[i % 4 / 2];
    }
    barrier_wait(at(s_.v_full[done_ % slots]), done_ / slots & 1);
    wgmma_fence();
    multiply(out, p, !first);
    wgmma_commit();
    if (turns && (group_ == 0 || next >= 0)) give_turn();
    wgmma_wait<1>();
    wgmma_arrived(x);
    if (next >= 0) release(next);
    written_ = about;
    about = next;
    ++done_;
  }

  __device__ __forceinline__ void end(float (&x)[64], float (&out)[64]) {
    wgmma_wait<0>();
    wgmma_arrived(out);
    wgmma_arrived(x);
    write(out, rows_);
    if (lane_ == 0) wait_stored();
  }

  // Draws dropout's mask of this step for the warp's queries, two lanes a query, half of the keys
  // each; and applies it.
  __device__ __forceinline__ void drop(uint32_t (&p)[32], int about) {
    const Item item = s_.items[about / item_step];
    keys_ = about & first_step ? item.steps - 1 : keys_ - 1;
    const int row = lane_ / 2, half = lane_ % 2;
    const int place = item.stats + (about & second_half ? half_rows : 0) + warp_ * warp_rows + row;
    const int groups = p_.tokens / 8;
    uint4* of_warp = s_.mask[group_ * 4 + warp_];
    uint32_t bits[2];
    kept_elements<8>(seed_, static_cast<uint64_t>(place) * groups + 16 * keys_ + 8 * half,
                     p_.dropout.threshold, bits);
    __syncwarp();  // the step before has read its own
    reinterpret_cast<uint2*>(of_warp + row)[half] = {bits[0], bits[1]};
    __syncwarp();
#pragma unroll
    for (int row8 = 0; row8 < 2; ++row8) {
      const uint4 all = of_warp[lane_ / 4 + 8 * row8];
      const uint32_t words[] = {all.x, all.y, all.z, all.w};
#pragma unroll
      for (int i = row8; i < 32; i += 2) {  // pairs of keys
        const uint32_t two = words[i / 8] >> (i / 2 % 4 * 8 + lane_ % 4 * 2);
        p[i] &= (two & 1 ? 0xffffU : 0) | (two & 2 ? 0xffff0000U : 0);
      }
    }
  }

  // Masks the diagonal; exponents become relative to the largest of the first 32 scores. Each row
  // sees the block's first key.
  __device__ __forceinline__ void begin_rows(float (&x)[64], int about) {
    if (causal) {
      const int ahead = (about & second_half ? half_rows : 0) + warp_ * warp_rows + lane_ / 4 -
                        lane_ % 4 * 2;  // offset of the row, to its first key
#pragma unroll
      for (int i = 0; i < 64; ++i)
        if (ahead + i % 4 / 2 * 8 < i / 4 * 8 + i % 2) x[i] = -INFINITY;
    }
    float largest[] = {-INFINITY, -INFINITY};
#pragma unroll
    for (int i = 0; i < 16; ++i) largest[i % 4 / 2] = fmaxf(largest[i % 4 / 2], x[i]);
    rows_ = {{quad_max(largest[0]) * scale_, quad_max(largest[1]) * scale_}, {0, 0}};
  }

  // Computes P in 16 bits, and this thread's sums of it.
  __device__ __forceinline__ void exponentials(const float (&x)[64], uint32_t (&p)[32],
                                               float (&sums)[2]) const {
    sums[0] = sums[1] = 0;
#pragma unroll
    for (int i = 0; i < 64; i += 2) {
      const int row = i % 4 / 2;
      const float e0 = exp2_fast(fmaf(x[i], scale_, -rows_.from[row])),
                  e1 = exp2_fast(fmaf(x[i + 1], scale_, -rows_.from[row]));
      sums[row] += e0;
      sums[row] += e1;
      p[i / 2] = packed<T>(e0, e1);
    }
  }
  // (A NaN stays a NaN either way.)
  static __device__ __forceinline__ bool too_large(const float (&sums)[2]) {
    return __any_sync(0xffffffffU, !(fmaxf(sums[0], sums[1]) <= most<T>));
  }
  // Computes P again, relative to the step's largest score; `shrink` is what earlier steps' sums
  // and output become smaller by.
  __device__ __forceinline__ void again(const float (&x)[64], uint32_t (&p)[32], float (&sums)[2],
                                        float (&shrink)[2]) {
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      float largest = -INFINITY;
#pragma unroll
      for (int i = 0; i < 64; i += 4)
        largest = fmaxf(largest, fmaxf(x[i + 2 * row], x[i + 2 * row + 1]));
      const float from = fmaxf(rows_.from[row], quad_max(largest) * scale_);
      shrink[row] = exp2_fast(rows_.from[row] - from);
      rows_.from[row] = from;
      rows_.sum[row] *= shrink[row];
    }
    exponentials(x, p, sums);
  }

  // out += P V; written where `add` is false.
  __device__ __forceinline__ void multiply(float (&out)[64], const uint32_t (&p)[32], bool add) {
    const uint64_t v = wide_columns(at(s_.v[done_ % slots]));
#pragma unroll
    for (int k = 0; k < 8; ++k) Wgmma<T>::from_registers(out, p + 4 * k, v + 128 * k, k > 0 || add);
  }

  __device__ __forceinline__ void write(const float (&out)[64], const Rows& rows) {
    const Item item = s_.items[written_ / item_step];
    const int row = (written_ & second_half ? half_rows : 0) + warp_ * warp_rows;
    const float sum[] = {quad_sum(rows.sum[0]), quad_sum(rows.sum[1])};
    const float keep = dropout ? p_.dropout.keep_scale : 1.0F;
    const float scale[] = {__frcp_rn(sum[0]) * keep, __frcp_rn(sum[1]) * keep};
    const uint32_t staged = at(s_.staged[group_ * 4 + warp_]);
    if (lane_ == 0) wait_stores_read();
    __syncwarp();
#pragma unroll
    for (int i = 0; i < panels; ++i)
      stage_rows<T>(staged + i * warp_bytes / panels, lane_ % 16, lane_, out + 32 * i, scale[0],
                    scale[1]);
    fence_async_proxy();
    __syncwarp();
    if (lane_ == 0) {
#pragma unroll
      for (int i = 0; i < panels; ++i)
        store_box(p_.out, item.column + i * head_dim, item.row + row,
                  staged + i * warp_bytes / panels);
    }
    if (lane_ % 4 != 0) return;
    constexpr float log_2 = 1 / log2_e;
    float* stats = p_.stats + item.stats + row + lane_ / 4;
    stats[0] = (rows.from[0] + __log2f(sum[0])) * log_2;
    stats[8] = (rows.from[1] + __log2f(sum[1])) * log_2;
  }

  const Forward& p_;
  Shared& s_;
  const int group_, warp_, lane_;
  const float scale_;
  int begun_ = 0, done_ = 0;        // steps
  int items_ = 0, steps_left_ = 0;  // items begun; of the last of them
  int written_ = 0;                 // about the step before
  const uint64_t seed_;
  int keys_ = 0;  // the step's block of keys; only with dropout
  Rows rows_{};
};

template <typename T, bool causal, bool dropout, bool pair, bool turns>
__global__ void __launch_bounds__(3 * warpgroup, 1)
    attention_wide_forward_kernel(const __grid_constant__ Forward p) {
  extern __shared__ __align__(1024) uint8_t memory[];
  Shared& s = *reinterpret_cast<Shared*>(memory);
  const auto begin = [&] {
    if (shared_address(&s) % alignof(Shared) != 0) __trap();
    for (int i = 0; i < slots; ++i) {
      for (uint64_t* one : {s.k_full, s.v_full, s.q_full}) barrier_init(shared_address(one + i), 1);
      for (uint64_t* all : {s.k_empty, s.v_empty})
        barrier_init(shared_address(all + i), pair ? 16 : 8);  // warps
      barrier_init(shared_address(s.q_empty + i), 8);
    }
    for (uint64_t& one : s.ticket_full) barrier_init(shared_address(&one), 1);
  };
  take_roles<pair>(
      begin, [&] { Copier<causal, pair>(p, s).run(); },
      [&](int group) { Multiplier<T, causal, dropout, pair, turns>(p, s, group).run(); });
  if (pair) meet_pair();  // neither SM's shared memory goes while the other may write to it
}

template <typename T, bool causal, bool dropout, bool pair, bool turns>
cudaError_t launch(const Forward& p, int sms, cudaStream_t stream) {
  const int items = p.batch * p.heads * p.blocks;
  const int blocks = pair ? std::min(sms / 2 * 2, items) : std::min(sms, items);
  return launch_blocks<Shared>(attention_wide_forward_kernel<T, causal, dropout, pair, turns>, p,
                               blocks, stream, pair ? 2 : 1);
}

template <typename T, bool dropout>
cudaError_t launch(const Forward& p, int sms, cudaStream_t stream) {
  if (!p.causal) return launch<T, false, dropout, false, false>(p, sms, stream);
  const bool pair = p.heads / p.kv_heads % 2 == 0;
  if constexpr (!dropout && sizeof(T) == 2) {
    const char* way = std::getenv("TALLY_WIDE");  // trial
    if (way && *way == '1') return launch<T, true, dropout, false, false>(p, sms, stream);
    if (way && *way == '2' && pair) return launch<T, true, dropout, true, true>(p, sms, stream);
    if (way && (*way == '2' || *way == '3'))
      return launch<T, true, dropout, false, true>(p, sms, stream);
  }
  return pair ? launch<T, true, dropout, true, false>(p, sms, stream)
              : launch<T, true, dropout, false, false>(p, sms, stream);
}

cudaError_t forward(const Forward& p, DType dtype, int sms, cudaStream_t stream) {
  const cudaError_t cleared = cudaMemsetAsync(p.next_item, 0, sizeof(unsigned), stream);
  if (cleared != cudaSuccess) return cleared;
  if (dtype == DType::bf16)
    return p.dropout.threshold > 0 ? launch<__nv_bfloat16, true>(p, sms, stream)
                                   : launch<__nv_bfloat16, false>(p, sms, stream);
  return p.dropout.threshold > 0 ? launch<__half, true>(p, sms, stream)
                                 : launch<__half, false>(p, sms, stream);
}

const bool listed = [] {
  wide_kernels.forward = forward;
  return true;
}();

}  // namespace
}  // namespace tally::train::cuda::hopper
