// With S = Q K^T, P = softmax(scale S), M dropout's mask:
//   out = (P M) V
//   dV = (P M)^T dO,  D = rowsum(dO O),  dS = scale P (M (dO V^T) - D),  dQ = dS K,  dK = dS^T Q
#include "src/ops/attention/unfused.h"

#include <algorithm>

#include "src/device/cuda/kernel.cuh"
#include "src/device/philox.h"
#include "src/ops/gemm/gemm.h"

namespace tally::train::cuda {
namespace {

constexpr size_t score_memory = size_t{256} << 20;  // for the matrices of the heads in work
constexpr int softmax_threads = 128;

// Where the heads of one chunk lie. Head n of the chunk is (batch, head) number first + n step.
struct Chunk {
  int64_t first, step, count;
};

struct Rows {
  int64_t tokens, head_dim, heads;
  Chunk chunk;
  bool causal;
  double scale;
  uint32_t threshold;
  double keep_scale;
  bool dropout;
  DropoutSeed seed;
};

template <typename A>
__device__ inline A mask_of(const Rows& r, uint64_t seed, int64_t head, int64_t i, int64_t j) {
  const auto element = static_cast<uint64_t>((head * r.tokens + i) * r.tokens + j);
  return dropout_keeps(seed, element, r.threshold) ? A(r.keep_scale) : A(0);
}

template <typename A>
__device__ inline A block_max(A x, A* shared) {
  x = warp_max(x);
  __syncthreads();
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = x;
  __syncthreads();
  x = shared[0];
  for (int w = 1; w < softmax_threads / 32; ++w) x = shared[w] > x ? shared[w] : x;
  return x;
}

// One block a row of scores. P may be the scores' memory.
template <typename T>
__global__ void softmax_kernel(const Acc<T>* scores, T* p, Acc<T>* lse, Rows r) {
  using A = Acc<T>;
  __shared__ A shared[64];
  const int64_t i = blockIdx.x, head = r.chunk.first + blockIdx.y * r.chunk.step;
  const int64_t row = (blockIdx.y * r.tokens + i) * r.tokens;
  const int64_t visible = r.causal ? i + 1 : r.tokens;
  const A scale = A(r.scale);
  A top = -INFINITY;
  for (int64_t j = threadIdx.x; j < visible; j += softmax_threads) {
    const A x = scores[row + j] * scale;
    top = x > top ? x : top;
  }
  top = block_max(top, shared);
  A sum = 0;
  for (int64_t j = threadIdx.x; j < visible; j += softmax_threads)
    sum += exp(scores[row + j] * scale - top);
  sum = block_sum(sum, shared);
  const A inverse = A(1) / sum;
  const uint64_t seed = r.seed.get();
  for (int64_t j = threadIdx.x; j < r.tokens; j += softmax_threads) {
    A x = 0;
    if (j < visible) {
      x = exp(scores[row + j] * scale - top) * inverse;
      if (r.dropout) x *= mask_of<A>(r, seed, head, i, j);
    }
    p[row + j] = narrow<T>(x);
  }
  if (threadIdx.x == 0) lse[head * r.tokens + i] = top + log(sum);
}

// scores -> P M, dp -> dS. The outputs may be the inputs' memory.
template <typename T>
__global__ void softmax_backward_kernel(const Acc<T>* scores, const Acc<T>* dp, const Acc<T>* lse,
                                        const T* out, const T* dout, T* p, T* ds, Rows r) {
  using A = Acc<T>;
  __shared__ A shared[64];
  const int64_t i = blockIdx.x, head = r.chunk.first + blockIdx.y * r.chunk.step;
  const int64_t row = (blockIdx.y * r.tokens + i) * r.tokens;
  const int64_t b = head / r.heads, h = head % r.heads;
  const int64_t at = ((b * r.tokens + i) * r.heads + h) * r.head_dim;
  A d = 0;
  for (int64_t k = threadIdx.x; k < r.head_dim; k += softmax_threads) {
    d += widen(out[at + k]) * widen(dout[at + k]);
  }
  d = block_sum(d, shared);
  const int64_t visible = r.causal ? i + 1 : r.tokens;
  const uint64_t seed = r.seed.get();
  const A scale = A(r.scale), shift = lse[head * r.tokens + i];
  for (int64_t j = threadIdx.x; j < r.tokens; j += softmax_threads) {
    A probability = 0, change = 0, mask = 1;
    if (j < visible) {
      probability = exp(scores[row + j] * scale - shift);
      if (r.dropout) mask = mask_of<A>(r, seed, head, i, j);
      change = probability * (dp[row + j] * mask - d) * scale;
    }
    p[row + j] = narrow<T>(probability * mask);
    ds[row + j] = narrow<T>(change);
  }
}

DType accumulator(DType t) {
  return t == DType::f64 ? DType::f64 : DType::f32;
}

// Bytes of one head's matrices: scores and their gradient, and both again in 16-bit types.
size_t bytes_a_head(const AttentionShape& a, DType t) {
  const size_t own = size_of(t) == 2 ? 2 * size_of(t) : 0;
  return static_cast<size_t>(a.tokens * a.tokens) * (2 * size_of(accumulator(t)) + own);
}

// Products run over all heads of one position in the batch, or over the batch for one head:
// whichever is more, in pieces that fit score_memory.
struct Plan {
  int64_t loop, across, piece;  // loop * across heads in all
  bool over_batch;
  Plan(const AttentionShape& a, DType t) : over_batch(a.batch > a.heads) {
    loop = over_batch ? a.heads : a.batch;
    across = over_batch ? a.batch : a.heads;
    const auto fit = static_cast<int64_t>(score_memory / std::max<size_t>(bytes_a_head(a, t), 1));
    piece = std::clamp<int64_t>(fit, 1, across);
  }
};

// One product of the chunk, batched over its heads.
struct Matrices {
  CudaCompute compute;
  const AttentionShape& shape;
  DType type;
  bool over_batch;

  int64_t packed_row() const { return 3 * shape.heads * shape.head_dim; }
  int64_t row() const { return shape.heads * shape.head_dim; }

  // Projection 0 (Q), 1 (K) or 2 (V) of the head where the chunk begins.
  Operand packed(const Tensor& qkv, int which, int64_t head, bool transposed) const {
    const int64_t b = head / shape.heads, h = head % shape.heads;
    const int64_t at = b * shape.tokens * packed_row() + (which * shape.heads + h) * shape.head_dim;
    return {static_cast<char*>(qkv.data) + at * static_cast<int64_t>(size_of(type)), type,
            packed_row(), over_batch ? shape.tokens * packed_row() : shape.head_dim, transposed};
  }
  Operand plain(const Tensor& t, int64_t head, bool transposed) const {
    const int64_t b = head / shape.heads, h = head % shape.heads;
    const int64_t at = b * shape.tokens * row() + h * shape.head_dim;
    return {static_cast<char*>(t.data) + at * static_cast<int64_t>(size_of(type)), type, row(),
            over_batch ? shape.tokens * row() : shape.head_dim, transposed};
  }
  Operand square(const void* data, DType t, bool transposed) const {
    return {data, t, shape.tokens, shape.tokens * shape.tokens, transposed};
  }
  void multiply(const Operand& a, const Operand& b, const Operand& out, int64_t cols, int64_t inner,
                int64_t count) const {
    GemmProblem p;
    p.rows = shape.tokens;
    p.cols = cols;
    p.inner = inner;
    p.batch = count;
    p.a = a;
    p.b = b;
    p.out = const_cast<void*>(out.data);
    p.out_dtype = out.dtype;
    p.out_leading = out.leading;
    p.out_stride = out.stride;
    gemm(compute, p);
  }
};

struct Scratch {
  char *scores, *gradient, *p, *ds;
  Scratch(void* base, const AttentionShape& a, DType t, int64_t heads) {
    const auto squares = static_cast<size_t>(heads * a.tokens * a.tokens);
    scores = static_cast<char*>(base);
    gradient = scores + squares * size_of(accumulator(t));
    const bool narrow = size_of(t) == 2;
    p = narrow ? gradient + squares * size_of(accumulator(t)) : scores;
    ds = narrow ? p + squares * size_of(t) : gradient;
  }
};

Rows rows_of(const AttentionShape& a, DropoutSeed seed) {
  return {a.tokens,
          a.head_dim,
          a.heads,
          {},
          a.causal,
          a.scale,
          dropout_threshold(a.dropout),
          dropout_scale(a.dropout),
          a.dropout > 0,
          seed};
}

// Calls f(chunk) for all heads.
template <typename F>
void for_chunks(const AttentionShape& a, const Plan& plan, F&& f) {
  for (int64_t l = 0; l < plan.loop; ++l) {
    for (int64_t c = 0; c < plan.across; c += plan.piece) {
      const int64_t count = std::min(plan.piece, plan.across - c);
      f(plan.over_batch ? Chunk{c * a.heads + l, a.heads, count}
                        : Chunk{l * a.heads + c, 1, count});
    }
  }
}

}  // namespace

size_t unfused_attention_workspace(const AttentionShape& shape, DType dtype) {
  const Plan plan(shape, dtype);
  return static_cast<size_t>(plan.piece) * bytes_a_head(shape, dtype) + 1024;
}

void unfused_attention_forward(const CudaCompute& compute, const AttentionShape& shape,
                               const Tensor& qkv, const Tensor& out, const Tensor& stats,
                               const Tensor& workspace, DropoutSeed seed) {
  CudaStream& s = compute.stream;
  const Plan plan(shape, qkv.dtype);
  const Matrices m{compute, shape, qkv.dtype, plan.over_batch};
  const Scratch scratch(workspace.data, shape, qkv.dtype, plan.piece);
  const DType wide = accumulator(qkv.dtype);
  Rows rows = rows_of(shape, seed);
  for_chunks(shape, plan, [&](const Chunk& c) {
    rows.chunk = c;
    m.multiply(m.packed(qkv, 0, c.first, false), m.packed(qkv, 1, c.first, true),
               m.square(scratch.scores, wide, false), shape.tokens, shape.head_dim, c.count);
    by_type(qkv.dtype, "attention_forward", [&](auto zero) {
      using T = decltype(zero);
      const dim3 grid(static_cast<unsigned>(shape.tokens), static_cast<unsigned>(c.count));
      softmax_kernel<T><<<grid, softmax_threads, 0, s.stream()>>>(
          reinterpret_cast<Acc<T>*>(scratch.scores), reinterpret_cast<T*>(scratch.p),
          stats.as<Acc<T>>(), rows);
      CUDA_LAUNCHED();
    });
    m.multiply(m.square(scratch.p, qkv.dtype, false), m.packed(qkv, 2, c.first, false),
               m.plain(out, c.first, false), shape.head_dim, shape.tokens, c.count);
  });
}

void unfused_attention_backward(const CudaCompute& compute, const AttentionShape& shape,
                                const Tensor& qkv, const Tensor& out, const Tensor& stats,
                                const Tensor& dout, const Tensor& dqkv, const Tensor& workspace,
                                DropoutSeed seed) {
  CudaStream& s = compute.stream;
  const Plan plan(shape, qkv.dtype);
  const Matrices m{compute, shape, qkv.dtype, plan.over_batch};
  const Scratch scratch(workspace.data, shape, qkv.dtype, plan.piece);
  const DType wide = accumulator(qkv.dtype);
  const int64_t T_ = shape.tokens, D = shape.head_dim;
  Rows rows = rows_of(shape, seed);
  for_chunks(shape, plan, [&](const Chunk& c) {
    rows.chunk = c;
    m.multiply(m.packed(qkv, 0, c.first, false), m.packed(qkv, 1, c.first, true),
               m.square(scratch.scores, wide, false), T_, D, c.count);
    m.multiply(m.plain(dout, c.first, false), m.packed(qkv, 2, c.first, true),
               m.square(scratch.gradient, wide, false), T_, D, c.count);
    by_type(qkv.dtype, "attention_backward", [&](auto zero) {
      using T = decltype(zero);
      const dim3 grid(static_cast<unsigned>(T_), static_cast<unsigned>(c.count));
      softmax_backward_kernel<T><<<grid, softmax_threads, 0, s.stream()>>>(
          reinterpret_cast<Acc<T>*>(scratch.scores), reinterpret_cast<Acc<T>*>(scratch.gradient),
          stats.as<Acc<T>>(), out.as<T>(), dout.as<T>(), reinterpret_cast<T*>(scratch.p),
          reinterpret_cast<T*>(scratch.ds), rows);
      CUDA_LAUNCHED();
    });
    m.multiply(m.square(scratch.ds, qkv.dtype, false), m.packed(qkv, 1, c.first, false),
               m.packed(dqkv, 0, c.first, false), D, T_, c.count);
    m.multiply(m.square(scratch.ds, qkv.dtype, true), m.packed(qkv, 0, c.first, false),
               m.packed(dqkv, 1, c.first, false), D, T_, c.count);
    m.multiply(m.square(scratch.p, qkv.dtype, true), m.plain(dout, c.first, false),
               m.packed(dqkv, 2, c.first, false), D, T_, c.count);
  });
}

}  // namespace tally::train::cuda
