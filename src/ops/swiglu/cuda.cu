// SwiGLU, a vector of gates and of ups a thread.
#include "src/device/cuda/kernel.cuh"
#include "src/ops/fp8/amax.cuh"
#include "src/ops/swiglu/swiglu.h"

namespace tally::train::cuda {
namespace {

constexpr int threads = 256;

template <typename A>
__device__ inline A logistic(A v) {
  return A(1) / (A(1) + exp(-v));
}

// The offset of vector `at` of the [M,F] tensors in the rows of [M,2F]: its gates; its ups are
// `columns` behind them.
__device__ inline int64_t gate_of(int64_t at, int64_t columns) {
  return at + at / columns * columns;
}

template <typename T, int N>
__global__ void __launch_bounds__(threads)
    forward_kernel(const T* h, T* y, unsigned* amax, int64_t count, int64_t columns) {
  using A = Acc<T>;
  const int64_t at = (static_cast<int64_t>(blockIdx.x) * threads + threadIdx.x) * N;
  Vector<T, N> out = {};
  if (at < count) {
    const T* const from = h + gate_of(at, columns);
    const Vector<T, N> gates = load<T, N>(from), ups = load<T, N>(from + columns);
#pragma unroll
    for (int k = 0; k < N; ++k) {
      const A v = widen(gates.v[k]);
      out.v[k] = narrow<T>(v * logistic(v) * widen(ups.v[k]));
    }
    store<T, N>(y + at, out);
  }
  if (amax) raise_amax<threads>(largest_of(out), amax);
}

template <typename T, int N>
__global__ void __launch_bounds__(threads)
    backward_kernel(const T* dy, const T* h, T* dh, unsigned* amax, int64_t count,
                    int64_t columns) {
  using A = Acc<T>;
  const int64_t at = (static_cast<int64_t>(blockIdx.x) * threads + threadIdx.x) * N;
  Vector<T, N> dgate = {}, dup = {};
  if (at < count) {
    const int64_t row = gate_of(at, columns);
    const Vector<T, N> d = load<T, N>(dy + at);
    const Vector<T, N> gates = load<T, N>(h + row), ups = load<T, N>(h + row + columns);
#pragma unroll
    for (int k = 0; k < N; ++k) {
      const A g = widen(d.v[k]), v = widen(gates.v[k]), s = logistic(v);
      dgate.v[k] = narrow<T>(g * widen(ups.v[k]) * s * (A(1) + v * (A(1) - s)));
      dup.v[k] = narrow<T>(g * v * s);
    }
    store<T, N>(dh + row, dgate);
    store<T, N>(dh + row + columns, dup);
  }
  if (amax) raise_amax<threads>(max(largest_of(dgate), largest_of(dup)), amax);
}

// Calls launch(T, N) as constants for [M,F] tensors of `columns` columns.
template <typename... P, typename F>
void by_width(DType type, const char* op, int64_t columns, F&& launch, const P*... addresses) {
  by_type(type, op, [&](auto zero) {
    using T = decltype(zero);
    if (vectorizable<T>(columns, addresses...)) {
      launch(zero, std::integral_constant<int, vector_size<T>>{});
    } else {
      launch(zero, std::integral_constant<int, 1>{});
    }
    CUDA_LAUNCHED();
  });
}

unsigned blocks_for(int64_t count, int width) {
  return static_cast<unsigned>(divide_up(divide_up(count, width), threads));
}

void forward(Stream& stream, In h, Out y, Out amax) {
  CudaStream& s = cuda_stream(stream);
  if (amax.defined()) s.fill_zero(amax.data, amax.bytes());
  const int64_t count = y.numel(), columns = y.dim(-1);
  if (count == 0) return;
  const auto launch = [&](auto zero, auto width) {
    using T = decltype(zero);
    constexpr int N = decltype(width)::value;
    forward_kernel<T, N><<<blocks_for(count, N), threads, 0, s.stream()>>>(
        h.as<T>(), y.as<T>(), amax.as<unsigned>(), count, columns);
  };
  by_width(y.dtype, swiglu_forward.name(), columns, launch, h.as<char>(), y.as<char>());
}

void backward(Stream& stream, In dy, In h, Out dh, Out amax) {
  CudaStream& s = cuda_stream(stream);
  if (amax.defined()) s.fill_zero(amax.data, amax.bytes());
  const int64_t count = dy.numel(), columns = dy.dim(-1);
  if (count == 0) return;
  const auto launch = [&](auto zero, auto width) {
    using T = decltype(zero);
    constexpr int N = decltype(width)::value;
    backward_kernel<T, N><<<blocks_for(count, N), threads, 0, s.stream()>>>(
        dy.as<T>(), h.as<T>(), dh.as<T>(), amax.as<unsigned>(), count, columns);
  };
  by_width(dy.dtype, swiglu_backward.name(), columns, launch, dy.as<char>(), h.as<char>(),
           dh.as<char>());
}

const OnCuda versions[] = {{swiglu_forward, forward}, {swiglu_backward, backward}};

}  // namespace
}  // namespace tally::train::cuda
