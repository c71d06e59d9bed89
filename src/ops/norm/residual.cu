// The addition to the residual stream without a norm, and its dropout.
#include "src/device/cuda/dropout.cuh"
#include "src/device/cuda/kernel.cuh"
#include "src/ops/norm/norm.h"

namespace tally::train::cuda {
namespace {

// r = x + mask(delta); without x: r = mask(delta).
template <typename T, int N>
__global__ void residual_kernel(const T* x, const T* delta, T* r, int64_t count, Dropout dropout) {
  dropout.resolve();
  const int64_t i = (static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) * N;
  if (i >= count) return;
  const Vector<T, N> d = load<T, N>(delta + i);
  Acc<T> sum[N];
#pragma unroll
  for (int k = 0; k < N; ++k) sum[k] = widen(d.v[k]);
  if (dropout.active) dropout.apply<N>(static_cast<uint64_t>(i), sum);
  if (x) {
    const Vector<T, N> a = load<T, N>(x + i);
#pragma unroll
    for (int k = 0; k < N; ++k) sum[k] += widen(a.v[k]);
  }
  Vector<T, N> y;
#pragma unroll
  for (int k = 0; k < N; ++k) y.v[k] = narrow<T>(sum[k]);
  store<T, N>(r + i, y);
}

void start(Stream& stream, const char* name, const ResidualSum& sum, const Out& r) {
  CudaStream& s = cuda_stream(stream);
  const In &x = sum.x, &delta = sum.delta;
  const int64_t count = delta.numel();
  if (count == 0) return;
  const Dropout mask(sum.mask);
  by_type(delta.dtype, name, [&](auto zero) {
    using T = decltype(zero);
    const auto with = [&](auto width) {
      constexpr int N = decltype(width)::value;
      residual_kernel<T, N>
          <<<static_cast<unsigned>(divide_up(divide_up(count, N), 256)), 256, 0, s.stream()>>>(
              x.as<T>(), delta.as<T>(), r.as<T>(), count, mask);
    };
    if (vectorizable<T>(count, x.as<T>(), delta.as<T>(), r.as<T>())) {
      with(std::integral_constant<int, vector_size<T>>{});
    } else {
      with(std::integral_constant<int, 1>{});
    }
    CUDA_LAUNCHED();
  });
}

void add(Stream& s, ResidualSum sum, Out r) {
  start(s, residual_forward.name(), sum, r);
}

void drop(Stream& s, In x, DropoutMask mask, Out y) {
  start(s, apply_dropout.name(), {{}, x, mask}, y);
}

const OnCuda versions[] = {{residual_forward, add}, {apply_dropout, drop}};

}  // namespace
}  // namespace tally::train::cuda
