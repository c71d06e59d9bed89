// LAMB over pieces of parameters, a block each.
#include "src/device/cuda/kernel.cuh"
#include "src/ops/optimizer/optimizer.h"

namespace tally::train::cuda {
namespace {

constexpr int threads = 256;

// T: gradients, master weights, moments; W: the weights that the model computes with.
template <typename T>
struct Moments {
  T *master, *first, *second;
};

template <typename T>
struct Coefficients {
  T factor, correction1, correction2, beta1, rest1, beta2, rest2, epsilon;
  __device__ Coefficients(const AdamW& hyper, const StepState& s)
      : factor(static_cast<T>(s.clip_factor)),
        correction1(static_cast<T>(s.bias_correction1)),
        correction2(static_cast<T>(s.bias_correction2)),
        beta1(static_cast<T>(hyper.beta1)),
        rest1(static_cast<T>(1 - hyper.beta1)),
        beta2(static_cast<T>(hyper.beta2)),
        rest2(static_cast<T>(1 - hyper.beta2)),
        epsilon(static_cast<T>(hyper.epsilon)) {}
  __device__ T direction(T gradient, T decay, T w, T& m, T& v) const {
    gradient *= factor;
    m = beta1 * m + rest1 * gradient;
    v = beta2 * v + rest2 * gradient * gradient;
    return m / correction1 / (sqrt(v / correction2) + epsilon) + decay * w;
  }
};

// Vectors of N elements at the beginning of a piece; none where they would not be aligned.
template <int N>
__device__ int vectors_of(const LambPiece& piece) {
  return piece.state % N == 0 && piece.weight % N == 0 ? piece.count / N : 0;
}

template <typename T>
__global__ void __launch_bounds__(threads)
    direction_kernel(AdamW hyper, const StepState* state, Moments<T> p, const LambPiece* pieces,
                     double* sums) {
  constexpr int N = vector_size<T>;
  __shared__ double shared[64];
  if (state->found_inf != 0) return;
  const LambPiece piece = pieces[blockIdx.x];
  const Coefficients<T> c(hyper, *state);
  const T decay = piece.norm < 0 ? T(0) : static_cast<T>(state->weight_decay);
  T* const gradient = static_cast<T*>(piece.gradient);
  T* const master = p.master + piece.state;
  T* const first = p.first + piece.state;
  T* const second = p.second + piece.state;
  T weights = 0, directions = 0;
  const int vectors = vectors_of<N>(piece);
  for (int at = static_cast<int>(threadIdx.x); at < vectors; at += threads) {
    const int i = at * N;
    Vector<T, N> u = load<T, N>(gradient + i), m = load<T, N>(first + i);
    Vector<T, N> v = load<T, N>(second + i);
    const Vector<T, N> w = load<T, N>(master + i);
#pragma unroll
    for (int k = 0; k < N; ++k) {
      u.v[k] = c.direction(u.v[k], decay, w.v[k], m.v[k], v.v[k]);
      weights += w.v[k] * w.v[k];
      directions += u.v[k] * u.v[k];
    }
    store<T, N>(gradient + i, u);
    store<T, N>(first + i, m);
    store<T, N>(second + i, v);
  }
  for (int i = vectors * N + static_cast<int>(threadIdx.x); i < piece.count; i += threads) {
    const T w = master[i], u = c.direction(gradient[i], decay, w, first[i], second[i]);
    gradient[i] = u;
    weights += w * w;
    directions += u * u;
  }
  double of_weights = weights, of_directions = directions;
  block_sum2(of_weights, of_directions, shared);
  if (threadIdx.x != 0) return;
  sums[2 * static_cast<int64_t>(blockIdx.x)] = of_weights;
  sums[2 * static_cast<int64_t>(blockIdx.x) + 1] = of_directions;
}

// A block a row: the sums of its pieces, in a fixed order.
__global__ void __launch_bounds__(threads)
    rows_kernel(const StepState* state, const int64_t* first_piece, const double* sums,
                double* norms) {
  __shared__ double shared[64];
  if (state->found_inf != 0) return;
  const int64_t row = blockIdx.x;
  double weights = 0, directions = 0;
  for (int64_t i = first_piece[row] + threadIdx.x; i < first_piece[row + 1]; i += threads) {
    weights += sums[2 * i];
    directions += sums[2 * i + 1];
  }
  block_sum2(weights, directions, shared);
  if (threadIdx.x != 0) return;
  norms[2 * row] = weights;
  norms[2 * row + 1] = directions;
}

__device__ double trust_ratio(const StepState& state, const LambPiece& piece, const double* norms) {
  if (piece.norm < 0 || state.weight_decay == 0) return 1;
  const double weights = norms[2 * static_cast<int64_t>(piece.norm)];
  const double directions = norms[2 * static_cast<int64_t>(piece.norm) + 1];
  return weights > 0 && directions > 0 ? sqrt(weights) / sqrt(directions) : 1;
}

template <typename T, typename W>
__global__ void __launch_bounds__(threads)
    step_kernel(const StepState* state, T* master, W* weights, const LambPiece* pieces,
                const double* norms, bool separate, bool zero_gradients) {
  constexpr int N = vector_size<T>;
  const LambPiece piece = pieces[blockIdx.x];
  const bool skip = state->found_inf != 0;
  if (skip && !zero_gradients) return;
  const T rate = static_cast<T>(state->learning_rate * trust_ratio(*state, piece, norms));
  T* const u = static_cast<T*>(piece.gradient);
  master += piece.state;
  weights += piece.weight;
  const int vectors = vectors_of<N>(piece);
  for (int at = static_cast<int>(threadIdx.x); at < vectors; at += threads) {
    const int i = at * N;
    if (!skip) {
      const Vector<T, N> step = load<T, N>(u + i);
      Vector<T, N> w = load<T, N>(master + i);
      Vector<W, N> rounded;
#pragma unroll
      for (int k = 0; k < N; ++k) {
        w.v[k] -= rate * step.v[k];
        rounded.v[k] = narrow<W>(static_cast<Acc<W>>(w.v[k]));
      }
      store<T, N>(master + i, w);
      if (separate) store<W, N>(weights + i, rounded);
    }
    if (zero_gradients) store<T, N>(u + i, Vector<T, N>{});
  }
  for (int i = vectors * N + static_cast<int>(threadIdx.x); i < piece.count; i += threads) {
    if (!skip) {
      master[i] -= rate * u[i];
      if (separate) weights[i] = narrow<W>(static_cast<Acc<W>>(master[i]));
    }
    if (zero_gradients) u[i] = 0;
  }
}

void direction(Stream& stream, const AdamW& hyper, const StepState* state,
               const LambBuffers& buffers, const LambTables& tables) {
  CudaStream& s = cuda_stream(stream);
  const auto blocks = static_cast<unsigned>(tables.count);
  auto* sums = tables.piece_sums.as<double>();
  const auto launch = [&](auto zero) {
    using T = decltype(zero);
    const Moments<T> p{buffers.master.as<T>(), buffers.m.as<T>(), buffers.v.as<T>()};
    direction_kernel<T><<<blocks, threads, 0, s.stream()>>>(hyper, state, p, tables.pieces, sums);
    CUDA_LAUNCHED();
  };
  if (blocks > 0 && buffers.master.dtype == DType::f64) launch(0.0);
  if (blocks > 0 && buffers.master.dtype != DType::f64) launch(0.0F);
  const auto rows = static_cast<unsigned>(tables.norms.shape[0]);
  if (rows == 0) return;
  rows_kernel<<<rows, threads, 0, s.stream()>>>(state, tables.first_piece, sums,
                                                tables.norms.as<double>());
  CUDA_LAUNCHED();
}

void step(Stream& stream, const StepState* state, const LambBuffers& buffers,
          const LambTables& tables, bool zero_gradients) {
  CudaStream& s = cuda_stream(stream);
  if (tables.count == 0) return;
  by_type(buffers.weights.dtype, lamb_step.name(), [&](auto zero) {
    using W = decltype(zero);
    using T = Acc<W>;
    const auto blocks = static_cast<unsigned>(tables.count);
    step_kernel<T, W><<<blocks, threads, 0, s.stream()>>>(
        state, buffers.master.as<T>(), buffers.weights.as<W>(), tables.pieces,
        tables.norms.as<double>(), buffers.weights.data != buffers.master.data, zero_gradients);
    CUDA_LAUNCHED();
  });
}

const OnCuda versions[] = {{lamb_direction, direction}, {lamb_step, step}};

}  // namespace
}  // namespace tally::train::cuda
