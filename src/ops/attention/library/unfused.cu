// S = Q K^T, P = softmax(scale S), M is dropout's mask:
//   out = (P M) V
//   dV = (P M)^T dO,  D = rowsum(dO O),  dS = scale P (M (dO V^T) - D),  dQ = dS K,  dK = dS^T Q
#include "src/ops/attention/library/unfused.h"

#include <algorithm>
#include <string>

#include "src/device/cuda/kernel.cuh"
#include "src/device/errors.h"
#include "src/device/philox.h"
#include "src/ops/attention/gpu_versions.h"
#include "src/ops/gemm/gemm.h"

namespace tally::train::cuda {
namespace {

constexpr int softmax_threads = 128;

// The position of one chunk's heads. Head n of the chunk is (batch, head) number first + n step.
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
  const int32_t* documents;  // cu_seqlens; null: none
  int64_t document_entries;

  // The keys [first, last) that query i of a sequence sees.
  __device__ void seen(int64_t sequence, int64_t i, int64_t* first, int64_t* last) const {
    *first = 0;
    *last = tokens;
    if (documents) {
      const int64_t token = sequence * tokens + i;
      // Finds the first document that begins after the token; the token belongs to the one before
      // it.
      int64_t low = 0, high = document_entries;
      while (low < high) {
        const int64_t middle = (low + high) / 2;
        if (documents[middle] > token) {
          high = middle;
        } else {
          low = middle + 1;
        }
      }
      *first = documents[low - 1] - sequence * tokens;
      const int64_t end = documents[low] - sequence * tokens;
      *last = end < tokens ? end : tokens;
    }
    if (causal) *last = i + 1;
  }
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
  int64_t first, last;
  r.seen(head / r.heads, i, &first, &last);
  const A scale = A(r.scale);
  A top = -INFINITY;
  for (int64_t j = first + threadIdx.x; j < last; j += softmax_threads) {
    const A x = scores[row + j] * scale;
    top = x > top ? x : top;
  }
  top = block_max(top, shared);
  A sum = 0;
  for (int64_t j = first + threadIdx.x; j < last; j += softmax_threads)
    sum += exp(scores[row + j] * scale - top);
  sum = block_sum(sum, shared);
  const A inverse = A(1) / sum;
  const uint64_t seed = r.seed.get();
  for (int64_t j = threadIdx.x; j < r.tokens; j += softmax_threads) {
    A x = 0;
    if (j >= first && j < last) {
      x = exp(scores[row + j] * scale - top) * inverse;
      if (r.dropout) x *= mask_of<A>(r, seed, head, i, j);
    }
    p[row + j] = narrow<T>(x);
  }
  if (threadIdx.x == 0) lse[head * r.tokens + i] = top + log(sum);
}

// Turns scores into P M and dp into dS. The outputs may be the inputs' memory.
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
  int64_t first, last;
  r.seen(b, i, &first, &last);
  const uint64_t seed = r.seed.get();
  const A scale = A(r.scale), shift = lse[head * r.tokens + i];
  for (int64_t j = threadIdx.x; j < r.tokens; j += softmax_threads) {
    A probability = 0, change = 0, mask = 1;
    if (j >= first && j < last) {
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

// One GEMM of the chunk, batched over its heads.
struct Matrices {
  CudaCompute compute;
  const AttentionArgs& args;
  bool over_batch;

  // The rows of the head of Q that the chunk begins with.
  template <typename Data>
  Operand of(const Heads<Data>& rows, int64_t head, bool transposed) const {
    return of(rows, head / args.shape.heads, head % args.shape.heads, transposed);
  }
  // The rows of the head of K or V that it takes.
  template <typename Data>
  Operand of_group(const Heads<Data>& rows, int64_t head, bool transposed) const {
    const AttentionShape& s = args.shape;
    return of(rows, head / s.heads, head % s.heads * s.kv_heads() / s.heads, transposed);
  }
  // Whether the head is not the first of its group: its part of dK and dV is added.
  bool adds(int64_t head) const {
    const AttentionShape& s = args.shape;
    return head % s.heads % (s.heads / s.kv_heads()) != 0;
  }
  Operand of(const In& t, int64_t head, bool transposed) const {
    return of(HeadsIn{t.data, args.shape.heads * args.shape.head_dim}, head, transposed);
  }
  Operand square(const void* data, DType t, bool transposed) const {
    const int64_t tokens = args.shape.tokens;
    return {data, t, tokens, tokens * tokens, transposed};
  }
  void multiply(const Operand& a, const Operand& b, const Operand& out, int64_t cols, int64_t inner,
                int64_t count, bool add = false) const {
    GemmProblem p;
    p.rows = args.shape.tokens;
    p.cols = cols;
    p.inner = inner;
    p.batch = count;
    p.a = a;
    p.b = b;
    p.out = const_cast<void*>(out.data);
    p.out_dtype = out.dtype;
    p.out_leading = out.leading;
    p.out_stride = out.stride;
    p.beta = add ? 1 : 0;
    gemm(compute, p);
  }

 private:
  template <typename Data>
  Operand of(const Heads<Data>& rows, int64_t b, int64_t h, bool transposed) const {
    const AttentionShape& s = args.shape;
    const int64_t at = b * s.tokens * rows.stride + h * s.head_dim;
    return {static_cast<const char*>(rows.data) + at * static_cast<int64_t>(size_of(args.dtype)),
            args.dtype, rows.stride, over_batch ? s.tokens * rows.stride : s.head_dim, transposed};
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

Rows rows_of(const AttentionArgs& args) {
  const AttentionShape& a = args.shape;
  return {a.tokens,
          a.head_dim,
          a.heads,
          {},
          a.causal(),
          a.scale,
          dropout_threshold(a.dropout),
          dropout_scale(a.dropout),
          a.dropout > 0,
          args.seed,
          args.cu_seqlens.as<int32_t>(),
          args.cu_seqlens.numel()};
}

// Calls f(chunk) for all heads.
template <typename F>
void for_chunks(const AttentionShape& a, const UnfusedChunks& chunks, F&& f) {
  for (int64_t l = 0; l < chunks.loop; ++l) {
    for (int64_t c = 0; c < chunks.across; c += chunks.piece) {
      const int64_t count = std::min(chunks.piece, chunks.across - c);
      f(chunks.over_batch ? Chunk{c * a.heads + l, a.heads, count}
                          : Chunk{l * a.heads + c, 1, count});
    }
  }
}

// An arrangement of the tokens that was not provided for must not write beyond the scratch.
void check_workspace(const char* op, const AttentionArgs& a) {
  const size_t needed = unfused_attention_workspace(a.shape, a.dtype), given = a.workspace.bytes();
  if (given >= needed) return;
  throw DeviceError(std::string(op) + ": unfused attention over " + std::to_string(a.shape.batch) +
                    " x " + std::to_string(a.shape.tokens) + " tokens needs " +
                    std::to_string(needed) + " bytes of scratch and was given " +
                    std::to_string(given));
}

}  // namespace

size_t unfused_attention_workspace(const AttentionShape& shape, DType dtype) {
  return unfused_attention_bytes(shape, dtype);
}

void unfused_attention_forward(const CudaCompute& compute, const AttentionArgs& a) {
  check_workspace("attention_forward", a);
  CudaStream& s = compute.stream;
  const AttentionShape& shape = a.shape;
  const UnfusedChunks chunks(shape, a.dtype);
  const Matrices m{compute, a, chunks.over_batch};
  const Scratch scratch(a.workspace.data, shape, a.dtype, chunks.piece);
  const DType wide = accumulator(a.dtype);
  Rows rows = rows_of(a);
  for_chunks(shape, chunks, [&](const Chunk& c) {
    rows.chunk = c;
    m.multiply(m.of(a.q, c.first, false), m.of_group(a.k, c.first, true),
               m.square(scratch.scores, wide, false), shape.tokens, shape.head_dim, c.count);
    by_type(a.dtype, "attention_forward", [&](auto zero) {
      using T = decltype(zero);
      const dim3 grid(static_cast<unsigned>(shape.tokens), static_cast<unsigned>(c.count));
      softmax_kernel<T><<<grid, softmax_threads, 0, s.stream()>>>(
          reinterpret_cast<Acc<T>*>(scratch.scores), reinterpret_cast<T*>(scratch.p),
          a.stats.as<Acc<T>>(), rows);
      CUDA_LAUNCHED();
    });
    m.multiply(m.square(scratch.p, a.dtype, false), m.of_group(a.v, c.first, false),
               m.of(a.out, c.first, false), shape.head_dim, shape.tokens, c.count);
  });
}

void unfused_attention_backward(const CudaCompute& compute, const AttentionArgs& a,
                                const AttentionGradients& gradients) {
  check_workspace("attention_backward", a);
  CudaStream& s = compute.stream;
  const AttentionShape& shape = a.shape;
  const UnfusedChunks chunks(shape, a.dtype);
  const Matrices m{compute, a, chunks.over_batch};
  const Scratch scratch(a.workspace.data, shape, a.dtype, chunks.piece);
  const DType wide = accumulator(a.dtype);
  const int64_t T_ = shape.tokens, D = shape.head_dim;
  const In& dout = gradients.dout;
  Rows rows = rows_of(a);
  for_chunks(shape, chunks, [&](const Chunk& c) {
    rows.chunk = c;
    m.multiply(m.of(a.q, c.first, false), m.of_group(a.k, c.first, true),
               m.square(scratch.scores, wide, false), T_, D, c.count);
    m.multiply(m.of(dout, c.first, false), m.of_group(a.v, c.first, true),
               m.square(scratch.gradient, wide, false), T_, D, c.count);
    by_type(a.dtype, "attention_backward", [&](auto zero) {
      using T = decltype(zero);
      const dim3 grid(static_cast<unsigned>(T_), static_cast<unsigned>(c.count));
      softmax_backward_kernel<T><<<grid, softmax_threads, 0, s.stream()>>>(
          reinterpret_cast<Acc<T>*>(scratch.scores), reinterpret_cast<Acc<T>*>(scratch.gradient),
          a.stats.as<Acc<T>>(), a.out.as<T>(), dout.as<T>(), reinterpret_cast<T*>(scratch.p),
          reinterpret_cast<T*>(scratch.ds), rows);
      CUDA_LAUNCHED();
    });
    m.multiply(m.square(scratch.ds, a.dtype, false), m.of_group(a.k, c.first, false),
               m.of(gradients.dq, c.first, false), D, T_, c.count);
    m.multiply(m.square(scratch.ds, a.dtype, true), m.of(a.q, c.first, false),
               m.of_group(gradients.dk, c.first, false), D, T_, c.count, m.adds(c.first));
    m.multiply(m.square(scratch.p, a.dtype, true), m.of(dout, c.first, false),
               m.of_group(gradients.dv, c.first, false), D, T_, c.count, m.adds(c.first));
  });
}

}  // namespace tally::train::cuda
