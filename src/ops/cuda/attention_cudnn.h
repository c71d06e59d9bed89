// Attention through cuDNN's graph interface: bf16 and f16 on compute capability 8.0 and newer.
#pragma once

#include <memory>

#include "src/ops/attention.h"
#include "src/ops/cuda/cuda_stream.h"

namespace tally::train::cuda {

class CudnnAttention {
 public:
  virtual ~CudnnAttention() = default;
  // Bytes of scratch for both directions; negative when cuDNN does not serve the shape. Builds both
  // graphs, once a shape.
  virtual int64_t workspace(CudaStream& s, const AttentionShape& shape, DType dtype) = 0;
  virtual void forward(CudaStream& s, const AttentionShape& shape, const Tensor& qkv,
                       const Tensor& out, const Tensor& stats, void* workspace,
                       DropoutSeed seed) = 0;
  virtual void backward(CudaStream& s, const AttentionShape& shape, const Tensor& qkv,
                        const Tensor& out, const Tensor& stats, const Tensor& dout,
                        const Tensor& dqkv, void* workspace, DropoutSeed seed) = 0;
};

// Null when this build has no cuDNN front end.
std::unique_ptr<CudnnAttention> make_cudnn_attention();

// Two int64 in device memory, seed and 0, as cuDNN reads them (attention_seed.cu).
void write_seed(CudaStream& s, void* place, DropoutSeed seed);

}  // namespace tally::train::cuda
