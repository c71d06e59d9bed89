// Which attention serves a shape on a GPU: attention.h has the table.
#include <cstdlib>
#include <cstring>

#include "src/ops/attention/backends.h"
#include "src/ops/attention/cudnn.h"
#include "src/ops/attention/flash.h"
#include "src/ops/attention/hopper.h"
#include "src/ops/attention/unfused.h"
#include "src/ops/gemm/gemm.h"
#include "src/ops/linear/passes.h"

namespace tally::train::cuda {
namespace {

// TALLY_ATTENTION=unfused takes unfused.h everywhere, to compare the others with it.
bool unfused_is_forced() {
  const char* wanted = std::getenv("TALLY_ATTENTION");
  return wanted && std::strcmp(wanted, "unfused") == 0;
}

enum class Algorithm { hopper, cudnn, flash, unfused };

// The same for both directions: a dropout mask is drawn again as it was drawn.
Algorithm algorithm(const CudaCompute& c, const AttentionShape& shape, DType dtype) {
  if (unfused_is_forced()) return Algorithm::unfused;
  if (hopper_attention_serves(c, shape, dtype)) return Algorithm::hopper;
  CudnnAttention* cudnn = cudnn_attention(c.stream);
  if (cudnn && size_of(dtype) == 2 && cudnn->workspace(c, shape, dtype) >= 0)
    return Algorithm::cudnn;
  return flash_attention_serves(c, shape, dtype) ? Algorithm::flash : Algorithm::unfused;
}

}  // namespace

const char* attention_backend(const Compute& compute, const AttentionShape& shape, DType dtype) {
  const CudaCompute c = cuda_compute(compute);
  switch (algorithm(c, shape, dtype)) {
    case Algorithm::hopper:
      return "hopper";
    case Algorithm::cudnn:
      return "cudnn";
    case Algorithm::flash:
      if (c.options.tf32x3_attention) return "flash-tf32x3";
      return float64_gemms_serve(c) ? "flash-float64" : "flash";
    case Algorithm::unfused:
      break;
  }
  return "unfused";
}

size_t attention_workspace(const Compute& compute, const AttentionShape& shape, DType dtype) {
  const CudaCompute c = cuda_compute(compute);
  switch (algorithm(c, shape, dtype)) {
    case Algorithm::hopper:
      return hopper_attention_workspace(shape);
    case Algorithm::cudnn:
      return static_cast<size_t>(cudnn_attention(c.stream)->workspace(c, shape, dtype));
    case Algorithm::flash:
      return flash_attention_workspace(shape);
    case Algorithm::unfused:
      break;
  }
  return unfused_attention_workspace(shape, dtype);
}

void attention_forward(const Compute& compute, const AttentionShape& shape, const Tensor& qkv,
                       const Tensor& out, const Tensor& stats, const Tensor& workspace,
                       DropoutSeed seed) {
  const CudaCompute c = cuda_compute(compute);
  switch (algorithm(c, shape, qkv.dtype)) {
    case Algorithm::hopper:
      return hopper_attention_forward(c.stream, shape, qkv, out, stats, workspace);
    case Algorithm::cudnn:
      return cudnn_attention(c.stream)->forward(c, shape, qkv, out, stats, workspace.data, seed);
    case Algorithm::flash:
      return flash_attention_forward(c, shape, qkv, out, stats, seed);
    case Algorithm::unfused:
      break;
  }
  unfused_attention_forward(c, shape, qkv, out, stats, workspace, seed);
}

void attention_backward(const Compute& compute, const AttentionShape& shape, const Tensor& qkv,
                        const Tensor& out, const Tensor& stats, const Tensor& dout,
                        const Tensor& dqkv, const Tensor& workspace, DropoutSeed seed,
                        const Tensor& q_sums) {
  const CudaCompute c = cuda_compute(compute);
  switch (algorithm(c, shape, qkv.dtype)) {
    case Algorithm::hopper:
      return hopper_attention_backward(c.stream, shape, qkv, out, stats, dout, dqkv, workspace,
                                       q_sums);
    case Algorithm::cudnn:
      cudnn_attention(c.stream)->backward(c, shape, qkv, out, stats, dout, dqkv, workspace.data,
                                          seed);
      break;
    case Algorithm::flash:
      flash_attention_backward(c, shape, qkv, out, stats, dout, dqkv, workspace, seed);
      break;
    case Algorithm::unfused:
      unfused_attention_backward(c, shape, qkv, out, stats, dout, dqkv, workspace, seed);
      break;
  }
  if (!q_sums.defined()) return;
  const int64_t columns = 3 * shape.heads * shape.head_dim;
  column_sums(c.stream, dqkv.view({shape.batch * shape.tokens, columns}), 0, q_sums);
}

}  // namespace tally::train::cuda
