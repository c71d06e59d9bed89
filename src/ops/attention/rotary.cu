// Rotary position embedding in place on Q and K. One block a token: the angles are computed once,
// in double, and serve all heads.
#include "src/device/cuda/kernel.cuh"
#include "src/ops/attention/backends.h"

namespace tally::train::cuda {
namespace {

template <typename T>
__global__ void rotary_kernel(T* qkv, const int32_t* positions, int64_t tokens, int row_length,
                              int heads, int width, int half, double base, bool inverse) {
  using A = Acc<T>;
  extern __shared__ unsigned char memory[];
  A* cosine = reinterpret_cast<A*>(memory);
  A* sine = cosine + half;
  const auto position =
      static_cast<double>(positions ? positions[blockIdx.x] : blockIdx.x % tokens);
  for (int i = threadIdx.x; i < half; i += blockDim.x) {
    double s, c;
    sincos(position * pow(base, -static_cast<double>(i) / half), &s, &c);
    cosine[i] = A(c);
    sine[i] = A(inverse ? -s : s);
  }
  __syncthreads();
  // Q's heads, then K's.
  T* row = qkv + static_cast<int64_t>(blockIdx.x) * row_length;
  for (int at = threadIdx.x; at < heads * half; at += blockDim.x) {
    T* head = row + at / half * width;
    const int i = at % half;
    const A a = widen(head[i]), b = widen(head[i + half]);
    head[i] = narrow<T>(a * cosine[i] - b * sine[i]);
    head[i + half] = narrow<T>(b * cosine[i] + a * sine[i]);
  }
}

}  // namespace

void rotary(Stream& stream, const Tensor& qkv, int64_t kv_heads, const Tensor& positions,
            double base, double fraction, bool inverse) {
  CudaStream& s = cuda_stream(stream);
  const auto width = static_cast<int>(qkv.dim(-1));
  const int half = static_cast<int>(static_cast<double>(width) * fraction) / 2;
  const auto rows = static_cast<unsigned>(qkv.dim(0) * qkv.dim(1));
  if (rows == 0 || half == 0) return;
  const auto row_length = static_cast<int>(qkv.numel() / rows);
  const int heads = row_length / width - static_cast<int>(kv_heads);
  by_type(qkv.dtype, __func__, [&](auto zero) {
    using T = decltype(zero);
    const size_t shared = 2 * static_cast<size_t>(half) * sizeof(Acc<T>);
    rotary_kernel<T><<<rows, 256, shared, s.stream()>>>(qkv.as<T>(), positions.as<int32_t>(),
                                                        qkv.dim(1), row_length, heads, width, half,
                                                        base, inverse);
    CUDA_LAUNCHED();
  });
}

}  // namespace tally::train::cuda
