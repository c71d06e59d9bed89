#include "src/ops/attention/flash/flash.h"

#include <algorithm>

#include "src/device/cuda/kernel.cuh"
#include "src/ops/attention/flash/kernels.h"
#include "src/ops/attention/gpu_versions.h"
#include "src/ops/gemm/gemm.h"

namespace tally::train::cuda {
namespace {

static_assert(key_block == flash_key_block);

FlashKernels kernels_for(const CudaCompute& c, const AttentionShape& shape) {
  const bool wide = shape.head_dim > 64;
  if (c.options.tf32x3_attention) return flash_tf32x3(wide);
  switch (c.options.matmul_mode) {
    case MatmulMode::tf32:
      return flash_tf32(wide);
    case MatmulMode::tf32x3:
      return flash_tf32x3(wide);
    default:
      return float64_gemms_serve(c) ? flash_float64(wide) : flash_ieee(wide);
  }
}

Flash problem(const AttentionArgs& args) {
  const AttentionShape& a = args.shape;
  Flash p{};
  p.qkv = static_cast<const float*>(args.q.data);
  p.stats = args.stats.as<float>();
  p.tokens = static_cast<int>(a.tokens);
  p.heads = static_cast<int>(a.heads);
  p.head_dim = static_cast<int>(a.head_dim);
  p.scale = static_cast<float>(a.scale);
  p.causal = a.causal();
  p.dropout = a.dropout > 0;
  p.threshold = dropout_threshold(a.dropout);
  p.keep_scale = static_cast<float>(dropout_scale(a.dropout));
  p.seed = args.seed;
  return p;
}

// delta = rowsum(dO O), a warp for each (batch, token, head).
__global__ void delta_kernel(const float* out, const float* dout, float* delta, int64_t rows,
                             int tokens, int heads, int head_dim) {
  const int64_t row = (blockIdx.x * int64_t{blockDim.x} + threadIdx.x) / 32;
  if (row >= rows) return;
  float sum = 0;
  for (int d = static_cast<int>(threadIdx.x % 32); d < head_dim; d += 32)
    sum += out[row * head_dim + d] * dout[row * head_dim + d];
  sum = warp_sum(sum);
  const int64_t token = row / heads, head = row % heads;
  if (threadIdx.x % 32 == 0) delta[(token / tokens * heads + head) * tokens + token % tokens] = sum;
}

}  // namespace

bool flash_attention_serves(const CudaCompute& c, const AttentionShape& shape, DType dtype) {
  return flash_attention_fits(shape, dtype) &&
         kernels_for(c, shape).shared_bytes <= c.stream.shared_bytes_a_block();
}

size_t flash_attention_workspace(const AttentionShape& shape) {
  return flash_attention_bytes(shape);
}

void flash_attention_forward(const CudaCompute& c, const AttentionArgs& a) {
  const int64_t heads = a.shape.batch * a.shape.heads;
  if (heads * a.shape.tokens == 0) return;
  Flash p = problem(a);
  p.out = a.out.as<float>();
  kernels_for(c, a.shape).forward(p, heads, c.stream.stream());
}

void flash_attention_backward(const CudaCompute& c, const AttentionArgs& a,
                              const AttentionGradients& gradients) {
  const AttentionShape& shape = a.shape;
  const cudaStream_t stream = c.stream.stream();
  Flash p = problem(a);
  auto* delta = static_cast<float*>(a.workspace.data);
  const int64_t heads = shape.batch * shape.heads, rows = heads * shape.tokens;
  if (rows == 0) return;
  delta_kernel<<<static_cast<unsigned>(divide_up(rows * 32, 256)), 256, 0, stream>>>(
      a.out.as<float>(), gradients.dout.as<float>(), delta, rows, p.tokens, p.heads, p.head_dim);
  CUDA_LAUNCHED();
  p.delta = delta;
  p.dout = gradients.dout.as<float>();
  p.dqkv = static_cast<float*>(gradients.dq.data);
  p.tiles =
      reinterpret_cast<float*>(static_cast<char*>(a.workspace.data) + flash_delta_bytes(shape));
  const FlashKernels kernels = kernels_for(c, shape);
  const int64_t piece = flash_heads_at_once(shape);
  for (; p.first_head < heads; p.first_head += piece)
    kernels.backward(p, std::min(piece, heads - p.first_head), stream);
}

}  // namespace tally::train::cuda
