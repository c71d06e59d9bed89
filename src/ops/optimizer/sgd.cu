// SGD with momentum over flat buffers.
#include "src/device/cuda/kernel.cuh"
#include "src/ops/optimizer/optimizer.h"

namespace tally::train::cuda {
namespace {

constexpr int threads = 256;

// T: gradients, master weights, momentum; W: the weights that the model computes with.
template <typename T, typename W>
struct Flat {
  T *gradients, *master, *momentum;
  W* weights;
  int64_t count, decayed;
  bool zero_gradients;
  __device__ bool separate() const {
    return static_cast<void*>(weights) != static_cast<void*>(master);
  }
};

template <typename T>
struct Coefficients {
  T lr, decay, factor, momentum;
  __device__ Coefficients(double momentum, const StepState& s)
      : lr(static_cast<T>(s.learning_rate)),
        decay(static_cast<T>(s.weight_decay)),
        factor(static_cast<T>(s.clip_factor)),
        momentum(static_cast<T>(momentum)) {}
  __device__ void update(T gradient, bool decayed, T& w, T& m) const {
    m = momentum * m + (factor * gradient + (decayed ? decay * w : T(0)));
    w -= lr * m;
  }
};

template <typename T, typename W>
__device__ inline void update_vectors(const Coefficients<T>& c, const Flat<T, W>& p, int64_t i) {
  constexpr int N = vector_size<T>;
  const Vector<T, N> gradient = load<T, N>(p.gradients + i);
  Vector<T, N> master = load<T, N>(p.master + i), momentum = load<T, N>(p.momentum + i);
  Vector<W, N> rounded;
#pragma unroll
  for (int k = 0; k < N; ++k) {
    c.update(gradient.v[k], i + k < p.decayed, master.v[k], momentum.v[k]);
    rounded.v[k] = narrow<W>(static_cast<Acc<W>>(master.v[k]));
  }
  store<T, N>(p.master + i, master);
  store<T, N>(p.momentum + i, momentum);
  if (p.separate()) store<W, N>(p.weights + i, rounded);
}

template <typename T, typename W>
__global__ void __launch_bounds__(threads)
    sgd_kernel(double momentum, const StepState* state, Flat<T, W> p) {
  constexpr int N = vector_size<T>;
  const bool skip = state->found_inf != 0;
  const Coefficients<T> c(momentum, *state);
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  const int64_t start = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const int64_t vectors = p.count / N;
  for (int64_t at = start; at < vectors; at += step) {
    if (!skip) update_vectors<T, W>(c, p, at * N);
    if (p.zero_gradients) store<T, N>(p.gradients + at * N, Vector<T, N>{});
  }
  for (int64_t i = vectors * N + start; i < p.count; i += step) {
    if (!skip) {
      c.update(p.gradients[i], i < p.decayed, p.master[i], p.momentum[i]);
      if (p.separate()) p.weights[i] = narrow<W>(static_cast<Acc<W>>(p.master[i]));
    }
    if (p.zero_gradients) p.gradients[i] = 0;
  }
}

void step(Stream& stream, double momentum, const StepState* state, const FlatUpdate& u) {
  CudaStream& s = cuda_stream(stream);
  const int64_t count = u.gradients.numel();
  if (count == 0) return;
  by_type(u.weights.dtype, sgd_step.name(), [&](auto zero) {
    using W = decltype(zero);
    using T = Acc<W>;
    const Flat<T, W> p{u.gradients.as<T>(), u.master.as<T>(), u.m.as<T>(), u.weights.as<W>(), count,
                       u.decayed,           u.zero_gradients};
    const int64_t wanted = divide_up(divide_up(count, vector_size<T>), threads);
    const int64_t resident = resident_blocks(s, sgd_kernel<T, W>, threads);
    const auto blocks = static_cast<unsigned>(wanted < resident ? wanted : resident);
    sgd_kernel<T, W><<<blocks, threads, 0, s.stream()>>>(momentum, state, p);
    CUDA_LAUNCHED();
  });
}

const OnCuda version(sgd_step, step);

}  // namespace
}  // namespace tally::train::cuda
