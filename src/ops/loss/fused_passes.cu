// What linear_cross_entropy does beside its product: the targets' logits before it, and after it
// losses, shares and the gradient at the targets.
#include "src/device/cuda/kernel.cuh"
#include "src/ops/loss/fused_passes.h"

namespace tally::train::cuda {
namespace {

constexpr int shift_threads = 256;

// A warp a token.
template <typename T>
__global__ void __launch_bounds__(shift_threads)
    shift_kernel(const T* x, const T* w, const int32_t* targets, float* shifts, int64_t tokens,
                 int64_t columns) {
  constexpr int N = vector_size<T>;
  const int64_t i = (static_cast<int64_t>(blockIdx.x) * shift_threads + threadIdx.x) / 32;
  if (i >= tokens) return;
  const int lane = threadIdx.x % 32;
  const int32_t target = targets[i];
  float sum = 0;
  if (target >= 0) {
    const T *mine = x + i * columns, *right = w + target * columns;
    for (int64_t c = lane * N; c < columns; c += 32 * N) {
      float a[N], b[N];
      widen(load<T, N>(mine + c), a);
      widen(load<T, N>(right + c), b);
#pragma unroll
      for (int k = 0; k < N; ++k) sum = fmaf(a[k], b[k], sum);
    }
  }
  sum = warp_sum(sum);
  if (lane == 0) shifts[i] = sum * log2_e;
}

constexpr int share_tokens = 32, share_slices = 8;

// 32 tokens a block, so that threads side by side read parts side by side; each of a token's eight
// threads adds every eighth part.
template <typename T>
__global__ void share_kernel(const float* parts, int count, const int32_t* targets, double factor,
                             const StepState* state, float* losses, float* shares, T* e,
                             int64_t tokens, int64_t columns) {
  __shared__ float sums[share_slices][share_tokens];
  const int64_t i = static_cast<int64_t>(blockIdx.x) * share_tokens + threadIdx.x;
  const int slice = static_cast<int>(threadIdx.y);
  float sum = 0;
  if (i < tokens) {
#pragma unroll 8
    for (int p = slice; p < count; p += share_slices) sum += parts[p * tokens + i];
  }
  sums[slice][threadIdx.x] = sum;
  __syncthreads();
  if (slice > 0 || i >= tokens) return;
  for (int s = 1; s < share_slices; ++s) sum += sums[s][threadIdx.x];
  const int32_t target = targets[i];
  if (target < 0) {
    losses[i] = shares[i] = 0;
    return;
  }
  const float scale = static_cast<float>(factor) * (state ? state->loss_scale : 1.0F);
  losses[i] = log1pf(sum);
  shares[i] = scale / (1 + sum);
  e[i * columns + target] = narrow<T>(-sum);
}

}  // namespace

void target_shifts(CudaStream& s, const Tensor& x, const Tensor& w, const Tensor& targets,
                   float* shifts) {
  const int64_t tokens = targets.numel();
  using T = __nv_bfloat16;
  shift_kernel<<<static_cast<unsigned>(divide_up(tokens, shift_threads / 32)), shift_threads, 0,
                 s.stream()>>>(x.as<T>(), w.as<T>(), targets.as<int32_t>(), shifts, tokens,
                               x.dim(-1));
  CUDA_LAUNCHED();
}

void target_probabilities(CudaStream& s, const float* parts, int64_t count, const Tensor& targets,
                          double factor, const StepState* state, const Tensor& losses,
                          const Tensor& shares, const Tensor& e) {
  const int64_t tokens = targets.numel();
  share_kernel<<<static_cast<unsigned>(divide_up(tokens, share_tokens)),
                 dim3(share_tokens, share_slices), 0, s.stream()>>>(
      parts, static_cast<int>(count), targets.as<int32_t>(), factor, state, losses.as<float>(),
      shares.as<float>(), e.as<__nv_bfloat16>(), tokens, e.dim(-1));
  CUDA_LAUNCHED();
}

}  // namespace tally::train::cuda
