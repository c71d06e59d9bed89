// Attention from matrix products and a softmax kernel, over a bounded number of heads at a time.
// Serves what the others do not: f64, large heads in f32, head sizes that cuDNN refuses, builds
// without its front end.
#pragma once

#include "src/ops/attention.h"
#include "src/ops/cuda/cuda_stream.h"

namespace tally::train::cuda {

size_t own_attention_workspace(const AttentionShape& shape, DType dtype);
void own_attention_forward(CudaStream& s, const AttentionShape& shape, const Tensor& qkv,
                           const Tensor& out, const Tensor& stats, const Tensor& workspace,
                           DropoutSeed seed);
void own_attention_backward(CudaStream& s, const AttentionShape& shape, const Tensor& qkv,
                            const Tensor& out, const Tensor& stats, const Tensor& dout,
                            const Tensor& dqkv, const Tensor& workspace, DropoutSeed seed);

}  // namespace tally::train::cuda
