// Gradient norm and AdamW over flat buffers.
#include "src/ops/cuda/common.cuh"
#include "src/ops/cuda/cuda_ops.h"

namespace tally::train::cuda {
namespace {

constexpr int norm_threads = 512;

// parts[block] = sum of squares of the block's share, in f64.
template <typename T>
__global__ void __launch_bounds__(norm_threads)
    squares_kernel(const T* gradients, int64_t count, double* parts) {
  constexpr int N = vector_size<T>;
  __shared__ double shared[64];
  const int64_t vectors = count / N, step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  const int64_t start = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  T sum = 0;
#pragma unroll 4
  for (int64_t i = start; i < vectors; i += step) {
    const Vector<T, N> g = load<T, N>(gradients + i * N);
#pragma unroll
    for (int k = 0; k < N; ++k) sum += g.v[k] * g.v[k];
  }
  for (int64_t i = vectors * N + start; i < count; i += step) sum += gradients[i] * gradients[i];
  const double total = block_sum(static_cast<double>(sum), shared);
  if (threadIdx.x == 0) parts[blockIdx.x] = total;
}

__global__ void __launch_bounds__(norm_threads)
    norm_kernel(const double* parts, int count, StepState* state) {
  __shared__ double shared[64];
  double sum = 0;
  for (int i = threadIdx.x; i < count; i += blockDim.x) sum += parts[i];
  sum = block_sum(sum, shared);
  if (threadIdx.x != 0) return;
  const double norm = sqrt(sum) / static_cast<double>(state->loss_scale);
  const double clip = state->clip;
  const double ratio = clip > 0 ? clip / (norm + 1e-6) : 1.0;
  state->grad_norm = static_cast<float>(norm);
  state->clip_factor = (ratio < 1 ? ratio : 1.0) / static_cast<double>(state->loss_scale);
  state->found_inf = isfinite(sum) ? 0.0F : 1.0F;
}

// T: gradients, master weights, moments; W: the weights that the model computes with.
template <typename T, typename W>
__global__ void __launch_bounds__(256)
    adamw_kernel(AdamW hyper, const StepState* state, int64_t decayed, int64_t count, T* gradients,
                 T* master, T* first, T* second, W* weights, bool zero_gradients) {
  constexpr int N = vector_size<T>;
  const int64_t i = (static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) * N;
  if (i >= count) return;
  const bool whole = i + N <= count;
  const auto fetch = [&](const T* from) {
    Vector<T, N> x{};
    if (whole) return load<T, N>(from + i);
    for (int k = 0; i + k < count; ++k) x.v[k] = from[i + k];
    return x;
  };
  const auto put = [&](T* to, const Vector<T, N>& x) {
    if (whole) return store<T, N>(to + i, x);
    for (int k = 0; i + k < count; ++k) to[i + k] = x.v[k];
  };
  if (state->found_inf == 0) {
    const T lr = state->learning_rate, decay = state->weight_decay, factor = state->clip_factor;
    const T correction1 = state->bias_correction1, correction2 = state->bias_correction2;
    const T beta1 = static_cast<T>(hyper.beta1), beta2 = static_cast<T>(hyper.beta2);
    const T rest1 = static_cast<T>(1 - hyper.beta1), rest2 = static_cast<T>(1 - hyper.beta2);
    const T epsilon = static_cast<T>(hyper.epsilon);
    const Vector<T, N> g = fetch(gradients);
    Vector<T, N> w = fetch(master), m = fetch(first), v = fetch(second);
#pragma unroll
    for (int k = 0; k < N; ++k) {
      const T gradient = g.v[k] * factor;
      m.v[k] = beta1 * m.v[k] + rest1 * gradient;
      v.v[k] = beta2 * v.v[k] + rest2 * gradient * gradient;
      const T shrink = i + k < decayed ? decay * w.v[k] : T(0);
      w.v[k] -= lr * (shrink + (m.v[k] / correction1) / (sqrt(v.v[k] / correction2) + epsilon));
    }
    put(master, w);
    put(first, m);
    put(second, v);
    if (static_cast<void*>(weights) != static_cast<void*>(master)) {
      Vector<W, N> rounded;
#pragma unroll
      for (int k = 0; k < N; ++k) rounded.v[k] = narrow<W>(static_cast<Acc<W>>(w.v[k]));
      if (whole) {
        store<W, N>(weights + i, rounded);
      } else {
        for (int k = 0; i + k < count; ++k) weights[i + k] = rounded.v[k];
      }
    }
  }
  if (zero_gradients) put(gradients, Vector<T, N>{});
}

int64_t norm_blocks(const CudaStream& s) {
  return static_cast<int64_t>(s.multiprocessors()) * 4;
}

}  // namespace

void gradient_norm(Stream& stream, const Tensor& gradients, StepState* state,
                   const Tensor& /*workspace*/) {
  CudaStream& s = cuda_stream(stream);
  const auto blocks = static_cast<unsigned>(norm_blocks(s));
  auto* parts = static_cast<double*>(s.workspace());
  if (gradients.dtype == DType::f64) {
    squares_kernel<<<blocks, norm_threads, 0, s.stream()>>>(gradients.as<double>(),
                                                            gradients.numel(), parts);
  } else {
    squares_kernel<<<blocks, norm_threads, 0, s.stream()>>>(gradients.as<float>(),
                                                            gradients.numel(), parts);
  }
  CUDA_LAUNCHED();
  norm_kernel<<<1, norm_threads, 0, s.stream()>>>(parts, static_cast<int>(blocks), state);
  CUDA_LAUNCHED();
}

// The partial sums live in the stream's own workspace.
size_t norm_workspace(Stream&, int64_t) {
  return 0;
}

void adamw_step(Stream& stream, const AdamW& hyper, const StepState* state, int64_t decayed,
                const Tensor& gradients, const Tensor& master, const Tensor& m, const Tensor& v,
                const Tensor& weights, bool zero_gradients) {
  CudaStream& s = cuda_stream(stream);
  const int64_t count = gradients.numel();
  if (count == 0) return;
  by_type(weights.dtype, __func__, [&](auto zero) {
    using W = decltype(zero);
    using T = Acc<W>;
    const auto blocks = static_cast<unsigned>(divide_up(divide_up(count, vector_size<T>), 256));
    adamw_kernel<T, W><<<blocks, 256, 0, s.stream()>>>(hyper, state, decayed, count,
                                                       gradients.as<T>(), master.as<T>(), m.as<T>(),
                                                       v.as<T>(), weights.as<W>(), zero_gradients);
    CUDA_LAUNCHED();
  });
}

}  // namespace tally::train::cuda
