// Flash attention by cuDNN's graph API: bf16 and f16 on compute capability 8.0 and newer.
#pragma once

#include "src/device/cuda/cuda_stream.h"
#include "src/ops/attention/attention.h"
#include "src/ops/attention/gpu_versions.h"

namespace tally::train::cuda {

class CudnnAttention {
 public:
  virtual ~CudnnAttention() = default;
  // Bytes of scratch for both directions; negative when cuDNN does not serve the shape. Builds both
  // graphs once a shape.
  virtual int64_t workspace(const CudaCompute& c, const AttentionShape& shape, DType dtype) = 0;
  // These take packed operands.
  virtual void forward(const CudaCompute& c, const AttentionArgs& args) = 0;
  virtual void backward(const CudaCompute& c, const AttentionArgs& args,
                        const AttentionGradients& gradients) = 0;
};

// cudnn.cc sets it before main(), in builds that have cuDNN's front end.
inline CudnnAttention* (*find_cudnn)(CudaStream& s) = nullptr;
// The object of the stream's device; null when this build has no cuDNN front end.
inline CudnnAttention* cudnn_attention(CudaStream& s) {
  return find_cudnn ? find_cudnn(s) : nullptr;
}

// The table of documents for cuDNN, in device memory: how long each is, and where it begins in
// elements of the packed tensor, of a plain one and of the statistics [tokens, heads]. Documents
// beyond the last are empty.
struct DocumentTable {
  int32_t* lengths = nullptr;                                     // [most_documents]
  int64_t *packed = nullptr, *plain = nullptr, *stats = nullptr;  // [most_documents + 1] each
};
int64_t document_table_bytes(const AttentionShape& shape);  // a multiple of 256
DocumentTable write_documents(CudaStream& s, const AttentionShape& shape, const In& cu_seqlens,
                              void* to);

// Two int64 in device memory, seed and 0, as cuDNN reads them (cudnn_tables.cu).
void write_seed(CudaStream& s, void* to, DropoutSeed seed);

}  // namespace tally::train::cuda
