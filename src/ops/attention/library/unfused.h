// Unfused attention: GEMMs and a softmax kernel, over a bounded number of heads at a time. It
// serves what the flash kernels do not: f64, large heads in f32, head sizes that cuDNN does not
// have, documents, and builds without cuDNN's front end.
#pragma once

#include "src/device/cuda/cuda_stream.h"
#include "src/ops/attention/attention.h"

namespace tally::train::cuda {

size_t unfused_attention_workspace(const AttentionShape& shape, DType dtype);
void unfused_attention_forward(const CudaCompute& c, const AttentionArgs& args);
void unfused_attention_backward(const CudaCompute& c, const AttentionArgs& args,
                                const AttentionGradients& gradients);

}  // namespace tally::train::cuda
