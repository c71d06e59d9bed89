#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <algorithm>

#include "src/parallel/nvlink/peer_sums.h"

namespace tally::train {
namespace {

constexpr int threads = 512;
// Vectors of each thread until another block takes the rest, up to most_peer_blocks.
constexpr int64_t vectors_of_thread = 2;

// Orders what this thread knows to be written (by its block, by kernels before) before the flag.
__device__ void release(uint32_t* flag, uint32_t value) {
  asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(flag), "r"(value) : "memory");
}

__device__ uint32_t acquire(const uint32_t* flag) {
  uint32_t value;
  asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(flag) : "memory");
  return value;
}

// Returns when the blocks of this number have finished their reads and writes on all ranks.
__device__ void meet(const PeerFlags& f, uint32_t meeting) {
  __syncthreads();
  const int peer = static_cast<int>(threadIdx.x);
  if (peer < f.ranks && peer != f.rank) {
    const unsigned row = blockIdx.x * most_peers;
    release(f.flags[peer] + row + f.rank, meeting);
    const uint32_t* mine = f.flags[f.rank] + row + peer;
    while (static_cast<int32_t>(acquire(mine) - meeting) < 0) {
    }
  }
  __syncthreads();
}

// The type in which elements are added, and how 16 bytes of them become that.
template <typename T>
struct Elements {
  using Wide = T;  // f32, f64
  static constexpr int count = 16 / sizeof(T);
  static __device__ void widen(const uint4& bits, Wide (&out)[count]) {
#pragma unroll
    for (int i = 0; i < count; ++i) out[i] = reinterpret_cast<const T*>(&bits)[i];
  }
  static __device__ uint4 round(const Wide (&in)[count]) {
    uint4 bits;
#pragma unroll
    for (int i = 0; i < count; ++i) reinterpret_cast<T*>(&bits)[i] = in[i];
    return bits;
  }
};

template <typename Pair>
struct Pairs {
  using Wide = float;
  static constexpr int count = 8;
  static __device__ void widen(const uint4& bits, float (&out)[count]) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float2 two = pair_to_floats(reinterpret_cast<const Pair*>(&bits)[i]);
      out[2 * i] = two.x;
      out[2 * i + 1] = two.y;
    }
  }
  static __device__ uint4 round(const float (&in)[count]) {
    uint4 bits;
#pragma unroll
    for (int i = 0; i < 4; ++i)
      floats_to_pair(in[2 * i], in[2 * i + 1], reinterpret_cast<Pair*>(&bits) + i);
    return bits;
  }

 private:
  static __device__ float2 pair_to_floats(__half2 pair) {
    return __half22float2(pair);
  }
  static __device__ float2 pair_to_floats(__nv_bfloat162 pair) {
    return __bfloat1622float2(pair);
  }
  static __device__ void floats_to_pair(float a, float b, __half2* pair) {
    *pair = __floats2half2_rn(a, b);
  }
  static __device__ void floats_to_pair(float a, float b, __nv_bfloat162* pair) {
    *pair = __floats2bfloat162_rn(a, b);
  }
};
template <>
struct Elements<__half> : Pairs<__half2> {};
template <>
struct Elements<__nv_bfloat16> : Pairs<__nv_bfloat162> {};

// The loads pass by the first-level cache, because nothing is read twice.
__device__ uint4 load(const void* from, int64_t i) {
  return __ldcg(static_cast<const uint4*>(from) + i);
}

// The elements behind the vectors.
template <typename T>
__device__ void add_tail(const PeerSum& a) {
  const int i = static_cast<int>(threadIdx.x);
  if (blockIdx.x > 0 || i >= a.tail) return;
  using Wide = typename Elements<T>::Wide;
  const int64_t at = a.vectors * Elements<T>::count + i;
  Wide total = 0;
  for (int k = 0; k < a.sources; ++k) {
    const auto next = static_cast<Wide>(static_cast<const T*>(a.from[k])[at]);
    total = k == 0 ? next : total + next;
  }
  for (int k = 0; k < a.targets; ++k) static_cast<T*>(a.to[k])[at] = static_cast<T>(total);
}

// The sum of the vectors `u`; a single one is copied.
template <typename T, int Most, int Together>
__device__ uint4 sum_of(const uint4 (&in)[Most][Together], int u, int sources) {
  if constexpr (Most == 1) {
    return in[0][u];
  } else {
    using E = Elements<T>;
    typename E::Wide total[E::count], next[E::count];
    E::widen(in[0][u], total);
#pragma unroll
    for (int k = 1; k < Most; ++k) {
      if (k >= sources) break;
      E::widen(in[k][u], next);
#pragma unroll
      for (int i = 0; i < E::count; ++i) total[i] += next[i];
    }
    return E::round(total);
  }
}

// `Most`: at least the number of sources; `Together`: vectors that a thread has under way from each
// of them at once, because NVLink takes some 2 us to answer.
template <typename T, int Most, int Together>
__global__ void __launch_bounds__(threads)
    add(const __grid_constant__ PeerFlags flags, const __grid_constant__ PeerSum a) {
  const uint32_t met = flags.meetings[blockIdx.x];
  meet(flags, met + 1);
  const int64_t step = static_cast<int64_t>(gridDim.x) * threads;
  const int64_t begin = static_cast<int64_t>(blockIdx.x) * threads + threadIdx.x;
  for (int64_t first = begin; first < a.vectors; first += Together * step) {
    uint4 in[Most][Together] = {};
#pragma unroll
    for (int k = 0; k < Most; ++k)
#pragma unroll
      for (int u = 0; u < Together; ++u)
        if (k < a.sources && first + u * step < a.vectors)
          in[k][u] = load(a.from[k], first + u * step);
#pragma unroll
    for (int u = 0; u < Together; ++u) {
      if (first + u * step >= a.vectors) break;
      const uint4 sum = sum_of<T>(in, u, a.sources);
#pragma unroll
      for (int k = 0; k < most_peers; ++k)
        if (k < a.targets) static_cast<uint4*>(a.to[k])[first + u * step] = sum;
    }
  }
  add_tail<T>(a);
  meet(flags, met + 2);
  if (threadIdx.x == 0) flags.meetings[blockIdx.x] = met + 2;
}

// The same number on all ranks.
unsigned blocks_for(int64_t vectors) {
  constexpr int64_t block = threads * vectors_of_thread;
  return static_cast<unsigned>(
      std::clamp<int64_t>((vectors + block - 1) / block, 1, most_peer_blocks));
}

template <typename T>
void launch(cudaStream_t stream, const PeerFlags& flags, const PeerSum& a) {
  const unsigned blocks = blocks_for(a.most_vectors);
  if (a.sources == 1) {
    add<T, 1, 8><<<blocks, threads, 0, stream>>>(flags, a);
  } else if (a.sources <= 2) {
    add<T, 2, 8><<<blocks, threads, 0, stream>>>(flags, a);
  } else if (a.sources <= 4) {
    add<T, 4, 4><<<blocks, threads, 0, stream>>>(flags, a);
  } else {
    add<T, most_peers, 2><<<blocks, threads, 0, stream>>>(flags, a);
  }
}

}  // namespace

bool can_add_peers(DType type) {
  return type == DType::f64 || type == DType::f32 || type == DType::bf16 || type == DType::f16;
}

cudaError_t add_peers(cudaStream_t stream, const PeerFlags& flags, const PeerSum& sum) {
  switch (sum.type) {
    case DType::f64:
      launch<double>(stream, flags, sum);
      break;
    case DType::bf16:
      launch<__nv_bfloat16>(stream, flags, sum);
      break;
    case DType::f16:
      launch<__half>(stream, flags, sum);
      break;
    default:  // f32, and what is only copied
      launch<float>(stream, flags, sum);
  }
  return cudaGetLastError();
}

}  // namespace tally::train
