// Gradient norm and AdamW over flat buffers.
#include <cuda_pipeline.h>

#include "src/device/cuda/kernel.cuh"
#include "src/ops/optimizer/optimizer.h"

namespace tally::train::cuda {
namespace {

constexpr int norm_threads = 512;

// parts[block] = sum of squares of the block's elements, in f64.
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

// The norm of the gradient whose sum of squares is `sum`.
__device__ void norm_of(double sum, StepState* state) {
  const double norm = sqrt(sum) / static_cast<double>(state->loss_scale);
  const double clip = state->clip;
  const double ratio = clip > 0 ? clip / (norm + 1e-6) : 1.0;
  state->grad_norm = static_cast<float>(norm);
  state->clip_factor = (ratio < 1 ? ratio : 1.0) / static_cast<double>(state->loss_scale);
  state->found_inf = isfinite(sum) ? 0.0F : 1.0F;
  update_dynamic_scale(state);
}

// Adds up the parts. `whole`: they are the whole gradient, whose norm is taken; else their sum is
// added to that of other parts.
__global__ void __launch_bounds__(norm_threads)
    norm_kernel(const double* parts, int count, bool whole, StepState* state) {
  __shared__ double shared[64];
  double sum = 0;
  for (int i = threadIdx.x; i < count; i += blockDim.x) sum += parts[i];
  sum = block_sum(sum, shared);
  if (threadIdx.x != 0) return;
  if (whole) {
    norm_of(sum, state);
  } else {
    state->gradient_squares += sum;
  }
}

__global__ void finish_norm_kernel(StepState* state) {
  norm_of(state->gradient_squares, state);
}

template <typename T>
__global__ void __launch_bounds__(256) add_kernel(const T* from, T* to, int64_t count) {
  constexpr int N = vector_size<T>;
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  const int64_t start = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const int64_t vectors = count / N;
  for (int64_t at = start; at < vectors; at += step) {
    const Vector<T, N> a = load<T, N>(from + at * N);
    Vector<T, N> sum = load<T, N>(to + at * N);
#pragma unroll
    for (int k = 0; k < N; ++k) sum.v[k] += a.v[k];
    store<T, N>(to + at * N, sum);
  }
  for (int64_t i = vectors * N + start; i < count; i += step) to[i] += from[i];
}

// T: gradients, master weights, moments; W: the weights that the model computes with.
template <typename T, typename W>
struct Flat {
  T *gradients, *master, *first, *second;
  W* weights;
  int64_t count, decayed;
  bool zero_gradients;
  // The master weights may be the weights in f32 and f64.
  __device__ bool separate() const {
    return static_cast<void*>(weights) != static_cast<void*>(master);
  }
};

// Coefficients that are the same for all elements, in the type of the arithmetic.
template <typename T>
struct Coefficients {
  T lr, decay, factor, inverse1, inverse2, beta1, rest1, beta2, rest2, epsilon;
  __device__ Coefficients(const AdamW& hyper, const StepState& s)
      : lr(static_cast<T>(s.learning_rate)),
        decay(static_cast<T>(s.weight_decay)),
        factor(static_cast<T>(s.clip_factor)),
        inverse1(static_cast<T>(1 / s.bias_correction1)),
        inverse2(static_cast<T>(1 / s.bias_correction2)),
        beta1(static_cast<T>(hyper.beta1)),
        rest1(static_cast<T>(1 - hyper.beta1)),
        beta2(static_cast<T>(hyper.beta2)),
        rest2(static_cast<T>(1 - hyper.beta2)),
        epsilon(static_cast<T>(hyper.epsilon)) {}

  // m / (sqrt(v) + epsilon). In f32 by the hardware's approximations, accurate to 2 units in the
  // last place: the exact ones are half of the kernel's instructions.
  __device__ T quotient(T m, T v) const {
    if constexpr (std::is_same_v<T, float>) {
      float root;
      asm("sqrt.approx.f32 %0, %1;" : "=f"(root) : "f"(v));
      return __fdividef(m, root + epsilon);
    } else {
      return m / (sqrt(v) + epsilon);
    }
  }

  __device__ void update(T gradient, bool decayed, T& w, T& m, T& v) const {
    gradient *= factor;
    m = beta1 * m + rest1 * gradient;
    v = beta2 * v + rest2 * gradient * gradient;
    w -= lr * ((decayed ? decay * w : T(0)) + quotient(m * inverse1, v * inverse2));
  }
};

// Elements i and following, a vector of each.
template <typename T>
struct AdamWVectors {
  Vector<T, vector_size<T>> gradient, master, first, second;
};
template <typename T, typename W>
__device__ inline void update_vectors(const Coefficients<T>& c, const Flat<T, W>& p, int64_t i,
                                      AdamWVectors<T> x) {
  constexpr int N = vector_size<T>;
  Vector<W, N> rounded;
#pragma unroll
  for (int k = 0; k < N; ++k) {
    c.update(x.gradient.v[k], i + k < p.decayed, x.master.v[k], x.first.v[k], x.second.v[k]);
    rounded.v[k] = narrow<W>(static_cast<Acc<W>>(x.master.v[k]));
  }
  store<T, N>(p.master + i, x.master);
  store<T, N>(p.first + i, x.first);
  store<T, N>(p.second + i, x.second);
  if (p.separate()) store<W, N>(p.weights + i, rounded);
}

template <typename T, typename W>
__global__ void __launch_bounds__(256)
    adamw_kernel(AdamW hyper, const StepState* state, Flat<T, W> p) {
  constexpr int N = vector_size<T>;
  const bool skip = state->found_inf != 0;
  const Coefficients<T> c(hyper, *state);
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  const int64_t start = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const int64_t vectors = p.count / N;
  for (int64_t at = start; at < vectors; at += step) {
    const int64_t i = at * N;
    if (!skip) {
      update_vectors<T, W>(c, p, i,
                           {load<T, N>(p.gradients + i), load<T, N>(p.master + i),
                            load<T, N>(p.first + i), load<T, N>(p.second + i)});
    }
    if (p.zero_gradients) store<T, N>(p.gradients + i, Vector<T, N>{});
  }
  for (int64_t i = vectors * N + start; i < p.count; i += step) {
    if (!skip) {
      c.update(p.gradients[i], i < p.decayed, p.master[i], p.first[i], p.second[i]);
      if (p.separate()) p.weights[i] = narrow<W>(static_cast<Acc<W>>(p.master[i]));
    }
    if (p.zero_gradients) p.gradients[i] = 0;
  }
}

// The same on a few SMs, one block each. A thread's operands are copied to shared memory several
// turns ahead (cp.async), so that the few threads have enough loads in flight. Whole vectors only.
constexpr int few_threads = 512, few_slots = 6;
template <typename T>
struct FewSlot {
  Vector<T, vector_size<T>> gradient[few_threads], master[few_threads], first[few_threads],
      second[few_threads];
};
template <typename T, typename W>
__global__ void __launch_bounds__(few_threads, 1)
    adamw_few_kernel(AdamW hyper, const StepState* state, Flat<T, W> p) {
  constexpr int N = vector_size<T>;
  extern __shared__ __align__(16) unsigned char shared[];
  auto* slots = reinterpret_cast<FewSlot<T>*>(shared);
  if (state->found_inf != 0) return;
  const Coefficients<T> c(hyper, *state);
  const int thread = static_cast<int>(threadIdx.x);
  const int64_t stride = static_cast<int64_t>(gridDim.x) * few_threads;
  const int64_t begin = static_cast<int64_t>(blockIdx.x) * few_threads + thread;
  const int64_t vectors = p.count / N;
  const auto fetch = [&](int64_t at, int slot) {
    if (at < vectors) {
      FewSlot<T>& to = slots[slot];
      __pipeline_memcpy_async(&to.gradient[thread], p.gradients + at * N, 16);
      __pipeline_memcpy_async(&to.master[thread], p.master + at * N, 16);
      __pipeline_memcpy_async(&to.first[thread], p.first + at * N, 16);
      __pipeline_memcpy_async(&to.second[thread], p.second + at * N, 16);
    }
    __pipeline_commit();
  };
  for (int k = 0; k < few_slots - 1; ++k) fetch(begin + k * stride, k);
  int slot = 0;
  for (int64_t at = begin; at < vectors; at += stride) {
    const int free = slot == 0 ? few_slots - 1 : slot - 1;  // read in the last turn
    fetch(at + (few_slots - 1) * stride, free);
    __pipeline_wait_prior(few_slots - 1);
    // A thread reads what it copied itself: no barrier.
    const FewSlot<T>& from = slots[slot];
    update_vectors<T, W>(
        c, p, at * N,
        {from.gradient[thread], from.master[thread], from.first[thread], from.second[thread]});
    slot = slot == few_slots - 1 ? 0 : slot + 1;
  }
}

// Clusters of two blocks, so that the SMs that are left form pairs, which the GEMMs' kernels need.
template <typename T, typename W>
void launch_few(CudaStream& s, int sms, const AdamW& hyper, const StepState* state,
                const Flat<T, W>& p) {
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(sms));
  config.blockDim = dim3(few_threads);
  config.stream = s.stream();
  config.dynamicSmemBytes = few_slots * sizeof(FewSlot<T>);
  CUDA_CHECK(cudaFuncSetAttribute(adamw_few_kernel<T, W>,
                                  cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  static_cast<int>(config.dynamicSmemBytes)));
  cudaLaunchAttribute cluster{};
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim = {sms % 2 == 0 ? 2U : 1U, 1, 1};
  config.attrs = &cluster;
  config.numAttrs = s.capability() >= 90 ? 1 : 0;
  CUDA_CHECK(cudaLaunchKernelEx(&config, adamw_few_kernel<T, W>, hyper, state, p));
}

int64_t norm_blocks(const CudaStream& s) {
  return static_cast<int64_t>(s.sms()) * 4;
}

void sum_squares(Stream& stream, const In& gradients, bool whole, StepState* state) {
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
  norm_kernel<<<1, norm_threads, 0, s.stream()>>>(parts, static_cast<int>(blocks), whole, state);
  CUDA_LAUNCHED();
}

void norm(Stream& s, In gradients, StepState* state) {
  sum_squares(s, gradients, true, state);
}

void add_squares(Stream& s, In gradients, StepState* state) {
  sum_squares(s, gradients, false, state);
}

void finish_norm(Stream& stream, StepState* state) {
  finish_norm_kernel<<<1, 1, 0, cuda_stream(stream).stream()>>>(state);
  CUDA_LAUNCHED();
}

void add(Stream& stream, In from, Out to) {
  CudaStream& s = cuda_stream(stream);
  const int64_t count = to.numel();
  if (count == 0) return;
  const auto launch = [&](auto zero) {
    using T = decltype(zero);
    const int64_t wanted = divide_up(divide_up(count, vector_size<T>), 256);
    const int64_t resident = resident_blocks(s, add_kernel<T>, 256);
    const auto blocks = static_cast<unsigned>(wanted < resident ? wanted : resident);
    add_kernel<T><<<blocks, 256, 0, s.stream()>>>(from.as<T>(), to.as<T>(), count);
    CUDA_LAUNCHED();
  };
  if (to.dtype == DType::f64) return launch(0.0);
  launch(0.0F);
}

void adamw(Stream& stream, const AdamW& hyper, const StepState* state, const FlatUpdate& u,
           int sms) {
  CudaStream& s = cuda_stream(stream);
  const int64_t count = u.gradients.numel();
  if (count == 0) return;
  by_type(u.weights.dtype, adamw_step.name(), [&](auto zero) {
    using W = decltype(zero);
    using T = Acc<W>;
    const Flat<T, W> p{u.gradients.as<T>(), u.master.as<T>(),  u.m.as<T>(),
                       u.v.as<T>(),         u.weights.as<W>(), count,
                       u.decayed,           u.zero_gradients};
    if (sms > 0 && !u.zero_gradients && count % vector_size<T> == 0 &&
        s.shared_bytes_a_block() >= few_slots * sizeof(FewSlot<T>)) {
      return launch_few<T, W>(s, sms, hyper, state, p);
    }
    const int64_t wanted = divide_up(divide_up(count, vector_size<T>), 256);
    const int64_t resident = resident_blocks(s, adamw_kernel<T, W>, 256);
    const auto blocks = static_cast<unsigned>(wanted < resident ? wanted : resident);
    adamw_kernel<T, W><<<blocks, 256, 0, s.stream()>>>(hyper, state, p);
    CUDA_LAUNCHED();
  });
}

const OnCuda versions[] = {{gradient_norm, norm},
                           {add_gradient_squares, add_squares},
                           {finish_gradient_norm, finish_norm},
                           {add_gradients, add},
                           {adamw_step, adamw}};

}  // namespace
}  // namespace tally::train::cuda
