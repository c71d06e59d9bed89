// Chooses the attention that serves a shape on a GPU: attention.h has the table.
#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "src/ops/attention/flash/flash.h"
#include "src/ops/attention/gpu_versions.h"
#include "src/ops/attention/hopper/hopper.h"
#include "src/ops/attention/hopper/short.h"
#include "src/ops/attention/library/cudnn.h"
#include "src/ops/attention/library/unfused.h"
#include "src/ops/column_sums.h"
#include "src/ops/gemm/gemm.h"

namespace tally::train::cuda {
namespace {

// TALLY_ATTENTION=unfused takes unfused attention everywhere, to compare the others with it;
// TALLY_ATTENTION=hopper takes hopper backward wherever it serves forward.
bool is_forced(const char* version) {
  const char* wanted = std::getenv("TALLY_ATTENTION");
  return wanted && std::strcmp(wanted, version) == 0;
}

using Algorithm = AttentionVersion;

bool serves(Algorithm version, const CudaCompute& c, const AttentionShape& shape, DType dtype) {
  switch (version) {
    case Algorithm::hopper_short:
      return short_attention_serves(c, shape, dtype);
    case Algorithm::hopper:
      return hopper_attention_serves(c, shape, dtype);
    case Algorithm::cudnn: {
      CudnnAttention* cudnn = cudnn_attention(c.stream);
      return cudnn && cudnn->workspace(c, shape, dtype) >= 0;
    }
    case Algorithm::flash:
      return flash_attention_serves(c, shape, dtype);
    case Algorithm::unfused:
      break;
  }
  return true;
}

Algorithm algorithm(const CudaCompute& c, const AttentionShape& shape, DType dtype) {
  if (is_forced("unfused")) return Algorithm::unfused;
  return choose_attention(shape, dtype,
                          [&](Algorithm version) { return serves(version, c, shape, dtype); });
}
Algorithm backward_algorithm(const CudaCompute& c, const AttentionShape& shape, DType dtype) {
  const Algorithm forward = algorithm(c, shape, dtype);
  if (is_forced("hopper")) return forward;
  return choose_backward(shape, forward,
                         [&](Algorithm version) { return serves(version, c, shape, dtype); });
}

void check_operands(const AttentionArgs& a) {
  if (a.cu_seqlens.defined() != a.shape.documents)
    throw DeviceError("attention: documents without cu_seqlens, or the other way around");
  if (a.shape.packed && !is_packed(a.shape, a.dtype, a.q, a.k, a.v))
    throw DeviceError("attention: the shape says packed, and q, k and v do not lie in one tensor");
}

const char* backend(const Compute& compute, const AttentionShape& shape, DType dtype) {
  const CudaCompute c = cuda_compute(compute);
  switch (algorithm(c, shape, dtype)) {
    case Algorithm::hopper_short:
      return "hopper-short";
    case Algorithm::hopper:
      return backward_algorithm(c, shape, dtype) == Algorithm::hopper ? "hopper" : "hopper+cudnn";
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

size_t workspace_of(Algorithm version, const CudaCompute& c, const AttentionShape& shape,
                    DType dtype) {
  switch (version) {
    case Algorithm::hopper_short:
      return 0;
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
size_t workspace(const Compute& compute, const AttentionShape& shape, DType dtype) {
  const CudaCompute c = cuda_compute(compute);
  return std::max(workspace_of(algorithm(c, shape, dtype), c, shape, dtype),
                  workspace_of(backward_algorithm(c, shape, dtype), c, shape, dtype));
}

void forward(const Compute& compute, const AttentionArgs& args) {
  const CudaCompute c = cuda_compute(compute);
  check_operands(args);
  switch (algorithm(c, args.shape, args.dtype)) {
    case Algorithm::hopper_short:
      return short_attention_forward(c.stream, args);
    case Algorithm::hopper:
      return hopper_attention_forward(c.stream, args);
    case Algorithm::cudnn:
      return cudnn_attention(c.stream)->forward(c, args);
    case Algorithm::flash:
      return flash_attention_forward(c, args);
    case Algorithm::unfused:
      return unfused_attention_forward(c, args);
  }
}

void backward(const Compute& compute, const AttentionArgs& args,
              const AttentionGradients& gradients) {
  const CudaCompute c = cuda_compute(compute);
  check_operands(args);
  switch (backward_algorithm(c, args.shape, args.dtype)) {
    case Algorithm::hopper_short:
      short_attention_backward(c.stream, args, gradients);
      break;
    case Algorithm::hopper:
      return hopper_attention_backward(c.stream, args, gradients);
    case Algorithm::cudnn:
      cudnn_attention(c.stream)->backward(c, args, gradients);
      break;
    case Algorithm::flash:
      flash_attention_backward(c, args, gradients);
      break;
    case Algorithm::unfused:
      unfused_attention_backward(c, args, gradients);
      break;
  }
  if (!gradients.q_sums.defined()) return;
  const AttentionShape& s = args.shape;
  column_sums(c.stream,
              Tensor(gradients.dq.data, args.dtype, {s.batch * s.tokens, gradients.dq.stride}), 0,
              gradients.q_sums);
}

const OnCuda versions[] = {{attention_backend, backend},
                           {attention_workspace, workspace},
                           {attention_forward, forward},
                           {attention_backward, backward}};

}  // namespace
}  // namespace tally::train::cuda
