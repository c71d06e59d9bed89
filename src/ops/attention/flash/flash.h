// Flash attention for float32: blocks of queries against blocks of keys, with a running maximum and
// sum, so that the matrix of scores is never stored (Milakov and Gimelshein, arXiv:1805.02867; Dao
// et al., arXiv:2205.14135). The backward pass computes blocks of P and dS once, for dK and dV. It
// stores the blocks of dS in the workspace for the pass that computes dQ, so that nothing is added
// atomically and the result is repeatable.
//
// The options' MatmulMode decides the arithmetic of the GEMMs: float32 multiply-adds (ieee; float64
// multiply-adds on tensor cores where float64_gemms_serve()), TF32 (tf32), or three TF32 GEMMs with
// float32's accuracy (tf32x3, or the options' tf32x3_attention).
#pragma once

#include "src/device/cuda/cuda_stream.h"
#include "src/ops/attention/attention.h"

namespace tally::train::cuda {

// Serves f32 with head sizes up to 128, on devices with enough shared memory in a block.
bool flash_attention_serves(const CudaCompute& c, const AttentionShape& shape, DType dtype);
size_t flash_attention_workspace(const AttentionShape& shape);
// These take packed operands.
void flash_attention_forward(const CudaCompute& c, const AttentionArgs& args);
void flash_attention_backward(const CudaCompute& c, const AttentionArgs& args,
                              const AttentionGradients& gradients);

}  // namespace tally::train::cuda
