// The forward kernel of kernels.h for heads of 128, for compute capability 9.0 only.
//
// As forward.cu, with these differences. Registers hold one step's scores, its P and the P of the
// step before, and 128 columns of output: 64 + 32 + 32 + 64 a thread. The next step's scores start
// as soon as this one's exponentials are done, and this step's P V behind them, so that both run
// during the next exponentials.
#include <algorithm>

#include "src/ops/attention/hopper/forward_parts.cuh"
#include "src/ops/attention/hopper/wide.cuh"

namespace tally::train::cuda::hopper {
namespace {

constexpr int slots = 2;  // for blocks of K, of V and of queries
// Descriptions of blocks of queries. One is needed until that block is written; by then at most
// three more are described.
constexpr int kept = 2 * slots;
constexpr int warp_bytes = warp_rows * wide_head_dim * 2;

// Barriers: `full` when what was copied is there, `empty` when it has been read.
struct alignas(1024) Shared {
  uint8_t k[slots][wide_bytes], v[slots][wide_bytes], q[slots][wide_bytes];
  uint8_t staged[8][warp_bytes];  // each warp's result on its way out
  uint4 mask[8][warp_rows];       // for each warp's queries: a bit a key of the step
  uint64_t k_full[slots], k_empty[slots], v_full[slots], v_empty[slots];
  uint64_t q_full[slots], q_empty[slots];
  QueryBlock items[kept];
};
static_assert(sizeof(Shared) <= most_shared);

// A block of keys or values.
__device__ void copy_keys(const Forward& p, uint8_t (&to)[wide_bytes], uint64_t& full, int column,
                          int row) {
  barrier_expect(at(full), wide_bytes);
  copy_wide(at(to), p.qkv, column, row, at(full));
}

// The copying thread. Its first block of queries comes from the queue, too, so that nothing waits
// for an SM that another kernel keeps. The next is drawn later, for SMs that have none yet.
template <bool causal>
__device__ void copy_all(const Forward& p, Shared& s) {
  const int items = p.batch * p.heads * p.blocks, width = p.heads * wide_head_dim;
  const int kv_width = p.kv_heads * wide_head_dim, heads_a_key = p.heads / p.kv_heads;
  unsigned next = atomicAdd(p.next_item, 1U);
  int step = 0;
  for (int n = 0;; ++n) {
    const int slot = n % slots, item = static_cast<int>(next);
    barrier_wait(at(s.q_empty[slot]), (n / slots & 1) ^ 1);
    if (item >= items) {
      s.items[n % kept].steps = -1;
      return barrier_arrive(at(s.q_full[slot]));
    }
    int head = 0;
    const QueryBlock i = describe<causal, wide_head_dim>(p, &head, item);
    s.items[n % kept] = i;
    barrier_expect(at(s.q_full[slot]), wide_bytes);
    copy_wide(at(s.q[slot]), p.qkv, i.column, i.row, at(s.q_full[slot]));
    const int keys = head / p.heads * p.tokens;
    const int kv_column = width + head % p.heads / heads_a_key * wide_head_dim;
#pragma unroll 1
    for (int b = i.steps - 1; b >= 0; --b, ++step) {
      const int t = step % slots, parity = (step / slots & 1) ^ 1, row = keys + b * block_rows;
      barrier_wait(at(s.k_empty[t]), parity);
      copy_keys(p, s.k[t], s.k_full[t], kv_column, row);
      barrier_wait(at(s.v_empty[t]), parity);
      copy_keys(p, s.v[t], s.v_full[t], kv_width + kv_column, row);
      if (b == i.steps / 2) next = atomicAdd(p.next_item, 1U);  // before it is needed
    }
  }
}

// One of the two warpgroups that compute.
template <typename T, bool causal, bool dropout>
class Multiplier : WarpQueries<dropout> {
 public:
  __device__ Multiplier(const Forward& p, Shared& s, int group)
      : WarpQueries<dropout>(p, group), s_(s) {}

  __device__ __forceinline__ void run() {
    float out[64], x[64];
    uint32_t even[32], odd[32];  // P of every other step
    barrier_wait(at(s_.q_full[0]), 0);
    if (s_.items[0].steps < 0) return;
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

  // Releases K after the scores begun last are computed, and Q after those of its last step.
  __device__ __forceinline__ void release(int about) {
    if (lane_ != 0) return;
    barrier_arrive(at(s_.k_empty[(begun_ - 1) % slots]));
    if (about & last_step) barrier_arrive(at(s_.q_empty[about / item_step % slots]));
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
    const bool redo = too_large<T>(sums);
    if (redo) again(x, p, sums, shrink);
    if (dropout) drop(p, about);  // here x holds nothing, so that registers are free
    rows_.sum[0] += sums[0];
    rows_.sum[1] += sums[1];
    const int next = begin_scores(x);
    wgmma_wait<1>();  // P V of the step before
    wgmma_arrived(out);
    if (done_ > 0 && lane_ == 0) barrier_arrive(at(s_.v_empty[(done_ - 1) % slots]));
    if (first && done_ > 0) write(out, before);
    if (redo && !first) {
#pragma unroll
      for (int i = 0; i < 64; ++i) out[i] *= shrink[i % 4 / 2];
    }
    barrier_wait(at(s_.v_full[done_ % slots]), done_ / slots & 1);
    wgmma_fence();
    multiply(out, p, !first);
    wgmma_commit();
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

  // Draws dropout's mask of this step and applies it.
  __device__ __forceinline__ void drop(uint32_t (&p)[32], int about) {
    this->draw(s_.mask, s_.items[about / item_step], about);
    const uint4* of_warp = s_.mask[group_ * 4 + warp_];
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
    const QueryBlock item = s_.items[written_ / item_step];
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
    this->write_stats(p_.stats + item.stats + row + lane_ / 4, rows, sum);
  }

  using WarpQueries<dropout>::p_;
  using WarpQueries<dropout>::group_;
  using WarpQueries<dropout>::warp_;
  using WarpQueries<dropout>::lane_;
  using WarpQueries<dropout>::scale_;
  Shared& s_;
  int begun_ = 0, done_ = 0;        // steps
  int items_ = 0, steps_left_ = 0;  // items begun; of the last of them
  int written_ = 0;                 // about the step before
  Rows rows_{};
};

template <typename T, bool causal, bool dropout>
__global__ void __launch_bounds__(3 * warpgroup, 1)
    attention_wide_forward_kernel(const __grid_constant__ Forward p) {
  extern __shared__ __align__(1024) uint8_t memory[];
  Shared& s = *reinterpret_cast<Shared*>(memory);
  const auto begin = [&] {
    if (shared_address(&s) % alignof(Shared) != 0) __trap();
    for (int i = 0; i < slots; ++i) {
      for (uint64_t* one : {s.k_full, s.v_full, s.q_full}) barrier_init(shared_address(one + i), 1);
      for (uint64_t* all : {s.k_empty, s.v_empty, s.q_empty})
        barrier_init(shared_address(all + i), 8);  // warps
    }
  };
  take_roles(
      begin, [&] { copy_all<causal>(p, s); },
      [&](int group) { Multiplier<T, causal, dropout>(p, s, group).run(); });
}

template <typename T, bool causal, bool dropout>
cudaError_t launch(const Forward& p, int sms, cudaStream_t stream) {
  return launch_blocks<Shared>(attention_wide_forward_kernel<T, causal, dropout>, p,
                               std::min(sms, p.batch * p.heads * p.blocks), stream);
}

template <typename T>
cudaError_t launch(const Forward& p, int sms, cudaStream_t stream) {
  if (p.dropout.threshold > 0)
    return p.causal ? launch<T, true, true>(p, sms, stream)
                    : launch<T, false, true>(p, sms, stream);
  return p.causal ? launch<T, true, false>(p, sms, stream)
                  : launch<T, false, false>(p, sms, stream);
}

cudaError_t forward(const Forward& p, DType dtype, int sms, cudaStream_t stream) {
  const cudaError_t cleared = cudaMemsetAsync(p.next_item, 0, sizeof(unsigned), stream);
  if (cleared != cudaSuccess) return cleared;
  return dtype == DType::bf16 ? launch<__nv_bfloat16>(p, sms, stream)
                              : launch<__half>(p, sms, stream);
}

const bool listed = [] {
  wide_kernels.forward = forward;
  return true;
}();

}  // namespace
}  // namespace tally::train::cuda::hopper
