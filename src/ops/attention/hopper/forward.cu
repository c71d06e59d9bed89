// The forward kernel of kernels.h, for compute capability 9.0 only.
//
// A block of threads takes one block of queries of a head after another from a queue and loops over
// the keys that they see, from the diagonal down. One warpgroup copies. The other two have 64
// queries each and take steps of 128 keys, without a pause where one block of queries ends and the
// next begins. A step's exponentials overlap with the second half of the P V before it and the
// scores after it, and results are written behind the next step's first exponentials.
//
// Exponents are relative to the largest of a row's first 32 scores, not of all. A thread's sum of P
// over a half step may grow to 2^60 (float16: 2^14), which costs floating-point numbers no
// accuracy. In each half step a vote finds out whether that is not enough, and then the half is
// repeated relative to its own largest score (Milakov and Gimelshein, arXiv:1805.02867). Scores of
// 2^29 and more (bf16: 2^31) are out of range, as in every kernel that rounds a
// scaled score.
#include <algorithm>

#include "src/ops/attention/hopper/forward_parts.cuh"

namespace tally::train::cuda::hopper {
namespace {

constexpr int slots = 4;  // for blocks of K, of V and of queries
// Descriptions of blocks of queries. One is needed until that block is written; by then at most
// five more are described.
constexpr int kept = 2 * slots;
constexpr int warp_bytes = warp_rows * head_dim * 2;

// Barriers: `full` when what was copied is there, `empty` when it has been read.
struct alignas(1024) Shared {
  uint8_t k[slots][tile_bytes], v[slots][tile_bytes], q[slots][tile_bytes];
  uint8_t staged[8][warp_bytes];  // each warp's result on its way out
  uint4 mask[8][warp_rows];       // for each warp's queries: a bit a key of the step
  uint64_t k_full[slots], k_empty[slots], v_full[slots], v_empty[slots];
  uint64_t q_full[slots], q_empty[slots];
  QueryBlock items[kept];
};
static_assert(sizeof(Shared) <= most_shared);

// The copying thread.
template <bool causal>
__device__ void copy_all(const Forward& p, Shared& s) {
  const int items = p.batch * p.heads * p.blocks, width = p.heads * head_dim;
  const int kv_width = p.kv_heads * head_dim, heads_a_key = p.heads / p.kv_heads;
  auto item = static_cast<int>(blockIdx.x);
  int step = 0;
  for (int n = 0;; ++n) {
    const int slot = n % slots;
    const unsigned next = atomicAdd(p.next_item, 1U);  // long before it is needed
    barrier_wait(at(s.q_empty[slot]), (n / slots & 1) ^ 1);
    if (item >= items) {
      s.items[n % kept].steps = -1;
      return barrier_arrive(at(s.q_full[slot]));
    }
    int head = 0;
    const QueryBlock i = describe<causal, head_dim>(p, &head, item);
    s.items[n % kept] = i;
    barrier_expect(at(s.q_full[slot]), tile_bytes);
    copy_box(at(s.q[slot]), p.qkv, i.column, i.row, at(s.q_full[slot]));
    const int keys = head / p.heads * p.tokens;
    const int kv_column = width + head % p.heads / heads_a_key * head_dim;
#pragma unroll 1
    for (int b = i.steps - 1; b >= 0; --b, ++step) {
      const int t = step % slots, parity = (step / slots & 1) ^ 1, row = keys + b * block_rows;
      barrier_wait(at(s.k_empty[t]), parity);
      barrier_expect(at(s.k_full[t]), tile_bytes);
      copy_box(at(s.k[t]), p.qkv, kv_column, row, at(s.k_full[t]));
      barrier_wait(at(s.v_empty[t]), parity);
      barrier_expect(at(s.v_full[t]), tile_bytes);
      copy_box(at(s.v[t]), p.qkv, kv_width + kv_column, row, at(s.v_full[t]));
    }
    item = static_cast<int>(gridDim.x + next);
  }
}

// One of the two warpgroups that compute. The order within step() keeps matrix instructions
// running; two buffers of scores alternate.
template <typename T, bool causal, bool dropout>
class Multiplier : WarpQueries<dropout> {
 public:
  __device__ Multiplier(const Forward& p, Shared& s, int group)
      : WarpQueries<dropout>(p, group), s_(s) {}

  __device__ __forceinline__ void run() {
    float out[32], a[64], b[64];
    uint32_t low[16], high[16];
    int step_a = begin_scores(a), step_b = begin_scores(b);
    wgmma_wait<1>();
    wgmma_arrived(a);
    release(step_a, 0);
    for (;;) {  // ptxas serializes if both ends meet at one point
      step(a, step_a, b, step_b, out, low, high);
      if (step_b < 0) return end(a, b, out);
      step(b, step_b, a, step_a, out, low, high);
      if (step_a < 0) return end(a, b, out);
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
    const uint64_t q = wgmma_tile(at(s_.q[item % slots]) + half * half_bytes),
                   k = wgmma_tile(at(s_.k[t]));
    wgmma_fence();
#pragma unroll
    for (int i = 0; i < 4; ++i) Wgmma<T>::scores(scores, q + 2 * i, k + 2 * i, i > 0);
    wgmma_commit();
    return about;
  }

  // Releases K after its scores are computed, and Q after those of its last step.
  __device__ __forceinline__ void release(int about, int step) {
    if (lane_ != 0) return;
    barrier_arrive(at(s_.k_empty[step % slots]));
    if (about & last_step) barrier_arrive(at(s_.q_empty[about / item_step % slots]));
  }

  // Computes the step of x, whose scores are complete; those of the next step, y, may not be.
  __device__ __forceinline__ void step(float (&x)[64], int& about, float (&y)[64], int about_y,
                                       float (&out)[32], uint32_t (&low)[16],
                                       uint32_t (&high)[16]) {
    const bool first = about & first_step;
    // The first 64 queries of the diagonal see the first 64 keys only. (A vote, for ptxas.)
    const bool whole =
        !causal || __any_sync(0xffffffffU, (about & (first_step | second_half)) != first_step);
    const Rows before = rows_;
    if (dropout) this->draw(s_.mask, s_.items[about / item_step], about);
    if (first) begin_rows(x, whole);
    float sums[2];
    exponentials<0>(x, low, sums);
    computed(low);
    bool redo = too_large<T>(sums);  // a vote: the exponentials are not moved behind the wait
    wgmma_wait<1>();                 // P V of the step before
    wgmma_arrived(out);
    if (done_ > 0 && lane_ == 0) barrier_arrive(at(s_.v_empty[(done_ - 1) % slots]));
    if (first && done_ > 0) write(out, before);
    add<0>(x, low, sums, redo, out, first);
    barrier_wait(at(s_.v_full[done_ % slots]), done_ / slots & 1);
    wgmma_fence();
    multiply<0>(out, low, !first);
    wgmma_commit();
    if (whole) {
      exponentials<1>(x, high, sums);
      redo = too_large<T>(sums);
    } else {
#pragma unroll
      for (uint32_t& pair : high) pair = 0;
    }
    computed(high);
    wgmma_wait<0>();  // the first half of P V, and y
    wgmma_arrived(out);
    wgmma_arrived(y);
    if (about_y >= 0) release(about_y, done_ + 1);
    if (whole) add<1>(x, high, sums, redo, out, false);
    if (whole) {
      wgmma_fence();
      multiply<1>(out, high, true);
      wgmma_commit();
    }
    written_ = about;
    about = begin_scores(x);
    ++done_;
  }

  __device__ __forceinline__ void end(float (&a)[64], float (&b)[64], float (&out)[32]) {
    wgmma_wait<0>();
    wgmma_arrived(out);
    wgmma_arrived(a);
    wgmma_arrived(b);
    write(out, rows_);
    if (lane_ == 0) wait_stored();
  }

  // Masks the diagonal; exponents become relative to the largest of the first 32 scores. Each row
  // sees the block's first key.
  __device__ __forceinline__ void begin_rows(float (&x)[64], bool whole) {
    if (causal && !whole) mask<0>(x);
    if (causal && whole) mask<1>(x);
    float largest[] = {-INFINITY, -INFINITY};
#pragma unroll
    for (int i = 0; i < 16; ++i) largest[i % 4 / 2] = fmaxf(largest[i % 4 / 2], x[i]);
    rows_ = {{quad_max(largest[0]) * scale_, quad_max(largest[1]) * scale_}, {0, 0}};
  }
  // Masks the half of the keys that the diagonal crosses.
  template <int half>
  __device__ __forceinline__ void mask(float (&x)[64]) const {
    const int ahead =
        warp_ * warp_rows + lane_ / 4 - lane_ % 4 * 2;  // offset of the row, to its first key
#pragma unroll
    for (int i = 0; i < 32; ++i) {
      if (ahead + i % 4 / 2 * 8 < i / 4 * 8 + i % 2) x[32 * half + i] = -INFINITY;
    }
  }

  // Computes P of half the keys, in 16 bits, and this thread's sums of it.
  template <int half>
  __device__ __forceinline__ void exponentials(const float (&x)[64], uint32_t (&p)[16],
                                               float (&sums)[2]) const {
    sums[0] = sums[1] = 0;
    uint2 kept[2] = {};
    if (dropout) {
      const uint4* of_warp = s_.mask[group_ * 4 + warp_] + lane_ / 4;
      kept[0] = reinterpret_cast<const uint2*>(of_warp)[half];
      kept[1] = reinterpret_cast<const uint2*>(of_warp + 8)[half];
    }
#pragma unroll
    for (int i = 0; i < 32; i += 2) {
      const int row = i % 4 / 2;
      const float* pair = x + 32 * half + i;
      float e0 = exp2_fast(fmaf(pair[0], scale_, -rows_.from[row])),
            e1 = exp2_fast(fmaf(pair[1], scale_, -rows_.from[row]));
      sums[row] += e0;
      sums[row] += e1;
      if (dropout) {
        const uint32_t bits =
            (i < 16 ? kept[row].x : kept[row].y) >> (i / 4 % 4 * 8 + lane_ % 4 * 2);
        e0 = bits & 1 ? e0 : 0;
        e1 = bits & 2 ? e1 : 0;
      }
      p[i / 2] = packed<T>(e0, e1);
    }
  }
  template <int half>
  __device__ __forceinline__ void add(const float (&x)[64], uint32_t (&p)[16], float (&sums)[2],
                                      bool redo, float (&out)[32], bool fresh) {
    if (redo) {
      float shrink[2];
#pragma unroll
      for (int row = 0; row < 2; ++row) {
        float largest = -INFINITY;
#pragma unroll
        for (int i = 0; i < 32; i += 4) {
          const float* pair = x + 32 * half + i + 2 * row;
          largest = fmaxf(largest, fmaxf(pair[0], pair[1]));
        }
        const float from = fmaxf(rows_.from[row], quad_max(largest) * scale_);
        shrink[row] = exp2_fast(rows_.from[row] - from);
        rows_.from[row] = from;
        rows_.sum[row] *= shrink[row];
      }
      if (!fresh) {  // else there is nothing in it yet
#pragma unroll
        for (int i = 0; i < 32; ++i) out[i] *= shrink[i % 4 / 2];
      }
      exponentials<half>(x, p, sums);
    }
    rows_.sum[0] += sums[0];
    rows_.sum[1] += sums[1];
  }

  // out += P V over half the keys; written where `add` is false.
  template <int half>
  __device__ __forceinline__ void multiply(float (&out)[32], const uint32_t (&p)[16], bool add) {
    const uint64_t v = wgmma_tile(at(s_.v[done_ % slots]) + half * half_bytes);
#pragma unroll
    for (int k = 0; k < 4; ++k)
      Wgmma<T>::from_registers(out, p + 4 * k, v + 128 * k, half > 0 || k > 0 || add);
  }

  __device__ __forceinline__ void write(const float (&out)[32], const Rows& rows) {
    const QueryBlock item = s_.items[written_ / item_step];
    const int row = (written_ & second_half ? half_rows : 0) + warp_ * warp_rows;
    const float sum[] = {quad_sum(rows.sum[0]), quad_sum(rows.sum[1])};
    const float keep = dropout ? p_.dropout.keep_scale : 1.0F;
    const float scale[] = {__frcp_rn(sum[0]) * keep, __frcp_rn(sum[1]) * keep};
    const uint32_t staged = at(s_.staged[group_ * 4 + warp_]);
    if (lane_ == 0) wait_stores_read();
    __syncwarp();
    stage_rows<T>(staged, lane_ % 16, lane_, out, scale[0], scale[1]);
    fence_async_proxy();
    __syncwarp();
    if (lane_ == 0) store_box(p_.out, item.column, item.row + row, staged);
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
    attention_forward_kernel(const __grid_constant__ Forward p) {
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
  return launch_blocks<Shared>(attention_forward_kernel<T, causal, dropout>, p,
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
  kernels.forward = forward;
  return true;
}();

}  // namespace
}  // namespace tally::train::cuda::hopper
