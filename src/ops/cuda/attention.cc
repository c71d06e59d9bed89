// Which attention serves a shape: cuDNN where it can (16-bit types), with a backward pass of our
// own where that is faster; our kernels of one pass for float32; else matrix products with softmax
// between them.
#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "src/ops/cuda/attention_cudnn.h"
#include "src/ops/cuda/attention_hopper.h"
#include "src/ops/cuda/attention_one_pass.h"
#include "src/ops/cuda/attention_own.h"
#include "src/ops/cuda/cuda_ops.h"

namespace tally::train::cuda {
namespace {

// TALLY_ATTENTION=own takes the plain way of attention_own.h everywhere, to compare others with it.
bool own_is_forced() {
  const char* wanted = std::getenv("TALLY_ATTENTION");
  return wanted && std::strcmp(wanted, "own") == 0;
}

// Bytes that cuDNN wants, negative when it does not serve the shape.
int64_t cudnn_bytes(CudaStream& s, const AttentionShape& shape, DType dtype) {
  if (!s.cudnn() || size_of(dtype) != 2 || own_is_forced()) return -1;
  return s.cudnn()->workspace(s, shape, dtype);
}

bool one_pass_serves(CudaStream& s, const AttentionShape& shape, DType dtype) {
  return !own_is_forced() && one_pass_attention_serves(s, shape, dtype);
}

// The backward pass alone, after whichever forward pass.
bool hopper_serves(CudaStream& s, const AttentionShape& shape, DType dtype) {
  return !own_is_forced() && hopper_attention_backward_serves(s, shape, dtype);
}

size_t forward_workspace(CudaStream& s, const AttentionShape& shape, DType dtype) {
  const int64_t bytes = cudnn_bytes(s, shape, dtype);
  if (bytes >= 0) return static_cast<size_t>(bytes);
  return one_pass_serves(s, shape, dtype) ? one_pass_attention_workspace(shape)
                                          : own_attention_workspace(shape, dtype);
}

}  // namespace

const char* attention_backend(Stream& stream, const AttentionShape& shape, DType dtype) {
  CudaStream& s = cuda_stream(stream);
  const bool hopper = hopper_serves(s, shape, dtype);
  if (cudnn_bytes(s, shape, dtype) >= 0) return hopper ? "cudnn+hopper" : "cudnn";
  if (!one_pass_serves(s, shape, dtype)) return hopper ? "own+hopper" : "own";
  if (s.three_tf32_attention) return "one-pass-tf32x3";
  return cuda::float64_products_serve(s) ? "one-pass-float64" : "one-pass";
}

size_t attention_workspace(Stream& stream, const AttentionShape& shape, DType dtype) {
  CudaStream& s = cuda_stream(stream);
  const size_t bytes = forward_workspace(s, shape, dtype);
  return hopper_serves(s, shape, dtype) ? std::max(bytes, hopper_attention_workspace(shape))
                                        : bytes;
}

void attention_forward(Stream& stream, const AttentionShape& shape, const Tensor& qkv,
                       const Tensor& out, const Tensor& stats, const Tensor& workspace,
                       DropoutSeed seed) {
  CudaStream& s = cuda_stream(stream);
  if (cudnn_bytes(s, shape, qkv.dtype) >= 0) {
    s.cudnn()->forward(s, shape, qkv, out, stats, workspace.data, seed);
  } else if (one_pass_serves(s, shape, qkv.dtype)) {
    one_pass_attention_forward(s, shape, qkv, out, stats, seed);
  } else {
    own_attention_forward(s, shape, qkv, out, stats, workspace, seed);
  }
}

void attention_backward(Stream& stream, const AttentionShape& shape, const Tensor& qkv,
                        const Tensor& out, const Tensor& stats, const Tensor& dout,
                        const Tensor& dqkv, const Tensor& workspace, DropoutSeed seed) {
  CudaStream& s = cuda_stream(stream);
  if (hopper_serves(s, shape, qkv.dtype)) {
    hopper_attention_backward(s, shape, qkv, out, stats, dout, dqkv, workspace);
  } else if (cudnn_bytes(s, shape, qkv.dtype) >= 0) {
    s.cudnn()->backward(s, shape, qkv, out, stats, dout, dqkv, workspace.data, seed);
  } else if (one_pass_serves(s, shape, qkv.dtype)) {
    one_pass_attention_backward(s, shape, qkv, out, stats, dout, dqkv, workspace, seed);
  } else {
    own_attention_backward(s, shape, qkv, out, stats, dout, dqkv, workspace, seed);
  }
}

}  // namespace tally::train::cuda
