// Rotary position embedding in place on Q and K. A block has a few tokens, whose angles are
// computed once, in double, and serve all heads.
#include "src/device/cuda/kernel.cuh"
#include "src/ops/attention/attention.h"

namespace tally::train::cuda {
namespace {

constexpr int threads = 256, tokens_a_block = 4;

struct Rotation {
  const int32_t* positions;  // null: the position in the sequence
  int64_t rows, tokens;
  int row, heads, width, half;  // elements of a row; heads of Q and K
  RotaryAngles angles;
  bool inverse;
};

// Vectors of N of a head's first half turn with those of its second.
template <typename T, int N>
__global__ void __launch_bounds__(threads) rotary_kernel(T* qkv, Rotation r) {
  using A = Acc<T>;
  extern __shared__ __align__(16) unsigned char memory[];
  const int64_t first = int64_t{blockIdx.x} * tokens_a_block;
  const auto count = static_cast<int>(min(int64_t{tokens_a_block}, r.rows - first));
  A* const cosine = reinterpret_cast<A*>(memory);
  A* const sine = cosine + tokens_a_block * r.half;
  for (int at = threadIdx.x; at < count * r.half; at += threads) {
    const int64_t row = first + at / r.half;
    const auto position = static_cast<double>(r.positions ? r.positions[row] : row % r.tokens);
    double s, c;
    sincos(position * rotary_frequency(r.angles, at % r.half, r.half), &s, &c);
    cosine[at] = A(c);
    sine[at] = A(r.inverse ? -s : s);
  }
  __syncthreads();
  // Q's heads, then K's, of each token.
  const int vectors = r.half / N, a_token = r.heads * vectors;
  for (int at = threadIdx.x; at < count * a_token; at += threads) {
    const int token = at / a_token, in_token = at - token * a_token, head = in_token / vectors,
              i = (in_token - head * vectors) * N;
    T* const low = qkv + (first + token) * r.row + head * r.width + i;
    const Vector<T, N> a = load<T, N>(low), b = load<T, N>(low + r.half);
    Vector<T, N> turned_a, turned_b;
#pragma unroll
    for (int k = 0; k < N; ++k) {
      const A c = cosine[token * r.half + i + k], s = sine[token * r.half + i + k];
      turned_a.v[k] = narrow<T>(widen(a.v[k]) * c - widen(b.v[k]) * s);
      turned_b.v[k] = narrow<T>(widen(b.v[k]) * c + widen(a.v[k]) * s);
    }
    store<T, N>(low, turned_a);
    store<T, N>(low + r.half, turned_b);
  }
}

template <typename T, int N>
void launch(CudaStream& s, T* qkv, const Rotation& r) {
  const size_t shared = 2 * static_cast<size_t>(tokens_a_block * r.half) * sizeof(Acc<T>);
  const auto blocks = static_cast<unsigned>(divide_up(r.rows, int64_t{tokens_a_block}));
  rotary_kernel<T, N><<<blocks, threads, shared, s.stream()>>>(qkv, r);
  CUDA_LAUNCHED();
}

void rotate(Stream& stream, Out qkv, const RotaryPositions& p, bool inverse) {
  CudaStream& s = cuda_stream(stream);
  const auto width = static_cast<int>(qkv.dim(-1));
  const int half = static_cast<int>(static_cast<double>(width) * p.fraction) / 2;
  const int64_t rows = qkv.dim(0) * qkv.dim(1);
  if (rows == 0 || half == 0) return;
  const auto row = static_cast<int>(qkv.numel() / rows);
  const int heads = row / width - static_cast<int>(p.kv_heads);
  const Rotation r{
      p.positions.as<int32_t>(), rows, qkv.dim(1), row, heads, width, half, p.angles, inverse};
  by_type(qkv.dtype, rotary_embedding.name(), [&](auto zero) {
    using T = decltype(zero);
    constexpr int N = vector_size<T>;
    if (half % N == 0 && vectorizable<T>(width, qkv.as<T>()))
      return launch<T, N>(s, qkv.as<T>(), r);
    launch<T, 1>(s, qkv.as<T>(), r);
  });
}

const OnCuda version(rotary_embedding, rotate);

}  // namespace
}  // namespace tally::train::cuda
