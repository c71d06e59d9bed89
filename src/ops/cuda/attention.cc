// Which attention serves a shape: in 16 bits our kernels on Hopper's matrix instructions, else
// cuDNN; our kernels of one pass for float32; else matrix products with softmax between them.
#include <cstdlib>
#include <cstring>

#include "src/ops/cuda/attention_cudnn.h"
#include "src/ops/cuda/attention_hopper.h"
#include "src/ops/cuda/attention_one_pass.h"
#include "src/ops/cuda/attention_own.h"
#include "src/ops/cuda/cuda_ops.h"
#include "src/ops/cuda/kernels.h"

namespace tally::train::cuda {
namespace {

// TALLY_ATTENTION=own takes the plain way of attention_own.h everywhere, to compare others with it.
bool own_is_forced() {
  const char* wanted = std::getenv("TALLY_ATTENTION");
  return wanted && std::strcmp(wanted, "own") == 0;
}

enum class Way { hopper, cudnn, one_pass, own };

// One way for both directions: a mask of dropout is drawn again as it was drawn.
Way way(CudaStream& s, const AttentionShape& shape, DType dtype) {
  if (own_is_forced()) return Way::own;
  if (hopper_attention_serves(s, shape, dtype)) return Way::hopper;
  if (s.cudnn() && size_of(dtype) == 2 && s.cudnn()->workspace(s, shape, dtype) >= 0)
    return Way::cudnn;
  return one_pass_attention_serves(s, shape, dtype) ? Way::one_pass : Way::own;
}

}  // namespace

const char* attention_backend(Stream& stream, const AttentionShape& shape, DType dtype) {
  CudaStream& s = cuda_stream(stream);
  switch (way(s, shape, dtype)) {
    case Way::hopper:
      return "hopper";
    case Way::cudnn:
      return "cudnn";
    case Way::one_pass:
      if (s.three_tf32_attention) return "one-pass-tf32x3";
      return cuda::float64_products_serve(s) ? "one-pass-float64" : "one-pass";
    case Way::own:
      break;
  }
  return "own";
}

size_t attention_workspace(Stream& stream, const AttentionShape& shape, DType dtype) {
  CudaStream& s = cuda_stream(stream);
  switch (way(s, shape, dtype)) {
    case Way::hopper:
      return hopper_attention_workspace(shape);
    case Way::cudnn:
      return static_cast<size_t>(s.cudnn()->workspace(s, shape, dtype));
    case Way::one_pass:
      return one_pass_attention_workspace(shape);
    case Way::own:
      break;
  }
  return own_attention_workspace(shape, dtype);
}

void attention_forward(Stream& stream, const AttentionShape& shape, const Tensor& qkv,
                       const Tensor& out, const Tensor& stats, const Tensor& workspace,
                       DropoutSeed seed) {
  CudaStream& s = cuda_stream(stream);
  switch (way(s, shape, qkv.dtype)) {
    case Way::hopper:
      return hopper_attention_forward(s, shape, qkv, out, stats, workspace);
    case Way::cudnn:
      return s.cudnn()->forward(s, shape, qkv, out, stats, workspace.data, seed);
    case Way::one_pass:
      return one_pass_attention_forward(s, shape, qkv, out, stats, seed);
    case Way::own:
      break;
  }
  own_attention_forward(s, shape, qkv, out, stats, workspace, seed);
}

void attention_backward(Stream& stream, const AttentionShape& shape, const Tensor& qkv,
                        const Tensor& out, const Tensor& stats, const Tensor& dout,
                        const Tensor& dqkv, const Tensor& workspace, DropoutSeed seed,
                        const Tensor& q_sums) {
  CudaStream& s = cuda_stream(stream);
  switch (way(s, shape, qkv.dtype)) {
    case Way::hopper:
      return hopper_attention_backward(s, shape, qkv, out, stats, dout, dqkv, workspace, q_sums);
    case Way::cudnn:
      s.cudnn()->backward(s, shape, qkv, out, stats, dout, dqkv, workspace.data, seed);
      break;
    case Way::one_pass:
      one_pass_attention_backward(s, shape, qkv, out, stats, dout, dqkv, workspace, seed);
      break;
    case Way::own:
      own_attention_backward(s, shape, qkv, out, stats, dout, dqkv, workspace, seed);
      break;
  }
  if (!q_sums.defined()) return;
  const int64_t columns = 3 * shape.heads * shape.head_dim;
  column_sums(s, dqkv.view({shape.batch * shape.tokens, columns}), 0, q_sums);
}

}  // namespace tally::train::cuda
