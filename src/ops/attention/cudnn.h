// Flash attention by cuDNN's graph API: bf16 and f16 on compute capability 8.0 and newer.
#pragma once

#include "src/device/cuda/cuda_stream.h"
#include "src/ops/attention/attention.h"

namespace tally::train::cuda {

class CudnnAttention {
 public:
  virtual ~CudnnAttention() = default;
  // Bytes of scratch for both directions; negative when cuDNN does not serve the shape. Builds both
  // graphs once a shape.
  virtual int64_t workspace(const CudaCompute& c, const AttentionShape& shape, DType dtype) = 0;
  // For packed operands.
  virtual void forward(const CudaCompute& c, const AttentionArgs& args) = 0;
  virtual void backward(const CudaCompute& c, const AttentionArgs& args,
                        const AttentionGradients& gradients) = 0;
};

// The object of the stream's device; null when this build has no cuDNN front end.
CudnnAttention* cudnn_attention(CudaStream& s);

// Two int64 in device memory, seed and 0, as cuDNN reads them (cudnn_seed.cu).
void write_seed(CudaStream& s, void* place, DropoutSeed seed);

}  // namespace tally::train::cuda
