#include <cuda_runtime.h>

#include <algorithm>

#include "src/parallel/nvlink/add_shares.h"

namespace tally::train {
namespace {

constexpr int threads = 512;
// Two blocks for each SM of the largest GPUs. The sum is bound by memory, and the GEMMs beside it
// wait for the SMs that it has: with all of them it is over soonest, and GEMMs that give each SM
// its tiles beforehand lose least.
constexpr int64_t most_blocks = 264;
// Vectors that a thread has under way from each rank.
constexpr int together = 4;

template <typename T, int Width>
struct alignas(Width * sizeof(T)) Vector {
  T v[Width];
};

template <typename T, int Width>
__global__ void __launch_bounds__(threads)
    add(const Vector<T, Width>* own, const Vector<T, Width>* staged, int64_t stride, int rank,
        int ranks, Vector<T, Width>* sum, int64_t vectors) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * threads;
  const int64_t begin = static_cast<int64_t>(blockIdx.x) * threads + threadIdx.x;
  for (int64_t first = begin; first < vectors; first += together * step) {
    Vector<T, Width> total[together] = {};
    for (int r = 0; r < ranks; ++r) {
      const Vector<T, Width>* from = r == rank ? own : staged + (r < rank ? r : r - 1) * stride;
      Vector<T, Width> next[together] = {};
#pragma unroll
      for (int k = 0; k < together; ++k)
        if (first + k * step < vectors) next[k] = from[first + k * step];
#pragma unroll
      for (int k = 0; k < together; ++k)
#pragma unroll
        for (int i = 0; i < Width; ++i)
          total[k].v[i] = r == 0 ? next[k].v[i] : total[k].v[i] + next[k].v[i];
    }
#pragma unroll
    for (int k = 0; k < together; ++k)
      if (first + k * step < vectors) sum[first + k * step] = total[k];
  }
}

// The sum has the priority of the main stream, which is the least: the sum's blocks take SMs that a
// GEMM has left, not those that its next blocks wait for.
template <typename T, int Width>
cudaError_t launch(cudaStream_t stream, const Addends& a, int64_t first, int64_t count) {
  if (count == 0) return cudaSuccess;
  int least = 0, greatest = 0;
  if (const cudaError_t error = cudaDeviceGetStreamPriorityRange(&least, &greatest);
      error != cudaSuccess)
    return error;
  const int64_t vectors = count / Width, block = static_cast<int64_t>(threads) * together;
  const int64_t blocks = std::min(most_blocks, (vectors + block - 1) / block);
  cudaLaunchAttribute priority{};
  priority.id = cudaLaunchAttributePriority;
  priority.val.priority = least;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(blocks));
  config.blockDim = dim3(threads);
  config.stream = stream;
  config.attrs = &priority;
  config.numAttrs = 1;
  using V = Vector<T, Width>;
  const auto at = [first](const void* p) {
    return reinterpret_cast<const V*>(static_cast<const T*>(p) + first);
  };
  return cudaLaunchKernelEx(&config, add<T, Width>, at(a.own), at(a.staged), a.stride / Width,
                            a.rank, a.ranks, const_cast<V*>(at(a.sum)), vectors);
}

template <typename T>
cudaError_t add_all(cudaStream_t stream, const Addends& a) {
  constexpr int width = 16 / sizeof(T);
  const auto bits = reinterpret_cast<uintptr_t>(a.own) | reinterpret_cast<uintptr_t>(a.sum);
  const int64_t wide = bits % 16 == 0 ? a.count / width * width : 0;
  const cudaError_t error = launch<T, width>(stream, a, 0, wide);
  return error != cudaSuccess ? error : launch<T, 1>(stream, a, wide, a.count - wide);
}

}  // namespace

bool can_add_shares(DType type) {
  return type == DType::f32 || type == DType::f64;
}

cudaError_t add_shares(cudaStream_t stream, const Addends& a) {
  return a.type == DType::f64 ? add_all<double>(stream, a) : add_all<float>(stream, a);
}

}  // namespace tally::train
