// Softmax cross-entropy: one block a row; one pass finds maximum and sum together, a second one,
// served by the L2 cache, writes the gradient over the logits.
#include <cmath>

#include "src/ops/cuda/common.cuh"
#include "src/ops/cuda/cuda_ops.h"

namespace tally::train::cuda {
namespace {

constexpr int loss_threads = 1024;

__device__ inline float exponential(float x) {
  return __expf(x);
}
__device__ inline double exponential(double x) {
  return exp(x);
}
__device__ inline float precise_exponential(float x) {
  return expf(x);
}
__device__ inline double precise_exponential(double x) {
  return exp(x);
}
// 16-bit logits do not need the last bits of the exponential.
template <typename T>
__device__ inline Acc<T> fitting_exponential(Acc<T> x) {
  return sizeof(T) == 2 ? exponential(x) : precise_exponential(x);
}

template <typename A>
struct MaxSum {
  A max, sum;
};
template <typename T, typename A>
__device__ inline MaxSum<A> join(MaxSum<A> x, MaxSum<A> y) {
  if (x.max < y.max) {
    const MaxSum<A> t = x;
    x = y;
    y = t;
  }
  // Both empty: the maxima are -infinity and their difference is not a number.
  if (y.sum > 0) x.sum += y.sum * fitting_exponential<T>(y.max - x.max);
  return x;
}

template <typename T, int N>
__global__ void __launch_bounds__(loss_threads)
    cross_entropy_kernel(T* logits, const int32_t* targets, void* losses, bool losses_f64,
                         int64_t vocabulary, int64_t padded, bool backward, double factor,
                         const StepState* state) {
  using A = Acc<T>;
  __shared__ MaxSum<A> shared[32];
  const int64_t row = blockIdx.x;
  T* x = logits + row * padded;
  const int32_t target = targets[row];
  MaxSum<A> mine{A(-INFINITY), A(0)};
  if (target >= 0) {
    for (int64_t i = threadIdx.x * N; i < vocabulary; i += loss_threads * N) {
      const Vector<T, N> v = load<T, N>(x + i);
      A max = mine.max, value[N];
#pragma unroll
      for (int k = 0; k < N; ++k) {
        value[k] = i + k < vocabulary ? widen(v.v[k]) : A(-INFINITY);
        max = value[k] > max ? value[k] : max;
      }
      if (max == A(-INFINITY)) continue;
      A sum = mine.sum * fitting_exponential<T>(mine.max - max);
#pragma unroll
      for (int k = 0; k < N; ++k) sum += fitting_exponential<T>(value[k] - max);
      mine = {max, sum};
    }
    for (int d = 16; d > 0; d >>= 1) {
      const MaxSum<A> other{__shfl_xor_sync(0xffffffffU, mine.max, d),
                            __shfl_xor_sync(0xffffffffU, mine.sum, d)};
      mine = join<T>(mine, other);
    }
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    if (lane == 0) shared[warp] = mine;
    __syncthreads();
    mine = shared[lane];
    for (int d = 16; d > 0; d >>= 1) {
      const MaxSum<A> other{__shfl_xor_sync(0xffffffffU, mine.max, d),
                            __shfl_xor_sync(0xffffffffU, mine.sum, d)};
      mine = join<T>(mine, other);
    }
  }
  if (threadIdx.x == 0) {
    const A loss = target >= 0 ? log(mine.sum) + mine.max - widen(x[target]) : A(0);
    if (losses_f64) {
      static_cast<double*>(losses)[row] = loss;
    } else {
      static_cast<float*>(losses)[row] = static_cast<float>(loss);
    }
  }
  if (!backward) return;
  __syncthreads();  // the target's logit has been read
  const A scale = target >= 0 ? A(factor) * (state ? A(state->loss_scale) : A(1)) : A(0);
  const A inverse = target >= 0 ? A(1) / mine.sum : A(0);
  // Backwards: the end of the row was read last and is most likely still in a cache.
  const int64_t rounds = (padded + loss_threads * N - 1) / (loss_threads * N);
  for (int64_t round = rounds - 1; round >= 0; --round) {
    const int64_t i = (round * loss_threads + threadIdx.x) * N;
    if (i >= padded) continue;
    Vector<T, N> v = load<T, N>(x + i);
#pragma unroll
    for (int k = 0; k < N; ++k) {
      A p = A(0);
      if (target >= 0 && i + k < vocabulary) {
        p = fitting_exponential<T>(widen(v.v[k]) - mine.max) * inverse -
            (i + k == target ? A(1) : A(0));
      }
      v.v[k] = narrow<T>(p * scale);
    }
    store<T, N>(x + i, v);
  }
}

template <typename T>
__global__ void __launch_bounds__(1024)
    add_losses_kernel(const T* losses, int64_t count, double factor, StepState* state) {
  __shared__ double shared[64];
  double sum = 0;
  for (int64_t i = threadIdx.x; i < count; i += blockDim.x) sum += losses[i];
  sum = block_sum(sum, shared);
  if (threadIdx.x == 0) state->loss_sum += factor * sum;
}

}  // namespace

void cross_entropy(Stream& stream, const Tensor& logits, const Tensor& targets, int64_t vocabulary,
                   bool backward, double factor, const StepState* state, const Tensor& losses) {
  CudaStream& s = cuda_stream(stream);
  const int64_t padded = logits.dim(-1), rows = targets.numel();
  if (rows == 0) return;
  const bool losses_f64 = losses.dtype == DType::f64;
  by_type(logits.dtype, __func__, [&](auto zero) {
    using T = decltype(zero);
    const auto start = [&](auto width) {
      constexpr int N = decltype(width)::value;
      cross_entropy_kernel<T, N><<<static_cast<unsigned>(rows), loss_threads, 0, s.stream()>>>(
          logits.as<T>(), targets.as<int32_t>(), losses.data, losses_f64, vocabulary, padded,
          backward, factor, state);
    };
    if (vectorizable<T>(padded, logits.as<T>())) {
      start(std::integral_constant<int, vector_size<T>>{});
    } else {
      start(std::integral_constant<int, 1>{});
    }
    CUDA_LAUNCHED();
  });
}

void add_losses(Stream& stream, const Tensor& losses, double factor, StepState* state) {
  CudaStream& s = cuda_stream(stream);
  if (losses.dtype == DType::f64) {
    add_losses_kernel<<<1, 1024, 0, s.stream()>>>(losses.as<double>(), losses.numel(), factor,
                                                  state);
  } else {
    add_losses_kernel<<<1, 1024, 0, s.stream()>>>(losses.as<float>(), losses.numel(), factor,
                                                  state);
  }
  CUDA_LAUNCHED();
}

}  // namespace tally::train::cuda
