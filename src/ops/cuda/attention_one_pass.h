// Attention of float32 tensors without the matrix of scores: blocks of queries against blocks of
// keys, with a running maximum and sum (Milakov and Gimelshein, arXiv:1805.02867; Dao et al.,
// arXiv:2205.14135). The backward pass computes blocks of P and dS once, for dK and dV; the blocks
// of dS wait in the workspace for the pass that computes dQ, so that nothing is added atomically
// and the result is repeatable.
//
// Products are of the stream's MatmulMode: float32 multiply-adds (ieee; float64 multiply-adds on
// tensor cores where float64_products_serve()), TF32 (tf32) or three TF32 products with float32's
// accuracy (tf32x3, or the stream's three_tf32_attention).
#pragma once

#include "src/ops/attention.h"
#include "src/ops/cuda/cuda_stream.h"

namespace tally::train::cuda {

// Serves f32 with head sizes up to 128, on devices with enough shared memory in a block.
bool one_pass_attention_serves(CudaStream& s, const AttentionShape& shape, DType dtype);
size_t one_pass_attention_workspace(const AttentionShape& shape);
void one_pass_attention_forward(CudaStream& s, const AttentionShape& shape, const Tensor& qkv,
                                const Tensor& out, const Tensor& stats, DropoutSeed seed);
void one_pass_attention_backward(CudaStream& s, const AttentionShape& shape, const Tensor& qkv,
                                 const Tensor& out, const Tensor& stats, const Tensor& dout,
                                 const Tensor& dqkv, const Tensor& workspace, DropoutSeed seed);

}  // namespace tally::train::cuda
