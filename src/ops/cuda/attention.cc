// Which attention serves a shape: cuDNN where it can, else our own.
#include <cstdlib>
#include <cstring>

#include "src/ops/cuda/attention_cudnn.h"
#include "src/ops/cuda/attention_own.h"
#include "src/ops/cuda/cuda_ops.h"

namespace tally::train::cuda {
namespace {

// TALLY_ATTENTION=own takes our kernels everywhere, to compare them with cuDNN's.
bool own_is_forced() {
  const char* wanted = std::getenv("TALLY_ATTENTION");
  return wanted && std::strcmp(wanted, "own") == 0;
}

// Bytes that cuDNN wants, negative when it does not serve the shape.
int64_t cudnn_bytes(CudaStream& s, const AttentionShape& shape, DType dtype) {
  if (!s.cudnn() || size_of(dtype) != 2 || own_is_forced()) return -1;
  return s.cudnn()->workspace(s, shape, dtype);
}

}  // namespace

const char* attention_backend(Stream& stream, const AttentionShape& shape, DType dtype) {
  return cudnn_bytes(cuda_stream(stream), shape, dtype) >= 0 ? "cudnn" : "own";
}

size_t attention_workspace(Stream& stream, const AttentionShape& shape, DType dtype) {
  const int64_t bytes = cudnn_bytes(cuda_stream(stream), shape, dtype);
  return bytes >= 0 ? static_cast<size_t>(bytes) : own_attention_workspace(shape, dtype);
}

void attention_forward(Stream& stream, const AttentionShape& shape, const Tensor& qkv,
                       const Tensor& out, const Tensor& stats, const Tensor& workspace,
                       DropoutSeed seed) {
  CudaStream& s = cuda_stream(stream);
  if (cudnn_bytes(s, shape, qkv.dtype) >= 0) {
    s.cudnn()->forward(s, shape, qkv, out, stats, workspace.data, seed);
  } else {
    own_attention_forward(s, shape, qkv, out, stats, workspace, seed);
  }
}

void attention_backward(Stream& stream, const AttentionShape& shape, const Tensor& qkv,
                        const Tensor& out, const Tensor& stats, const Tensor& dout,
                        const Tensor& dqkv, const Tensor& workspace, DropoutSeed seed) {
  CudaStream& s = cuda_stream(stream);
  if (cudnn_bytes(s, shape, qkv.dtype) >= 0) {
    s.cudnn()->backward(s, shape, qkv, out, stats, dout, dqkv, workspace.data, seed);
  } else {
    own_attention_backward(s, shape, qkv, out, stats, dout, dqkv, workspace, seed);
  }
}

}  // namespace tally::train::cuda
