#include "src/ops/attention/hopper/short.h"

#include <algorithm>

#include "src/device/cuda/check.h"
#include "src/device/cuda/tensor_map.h"
#include "src/ops/attention/gpu_versions.h"
#include "src/ops/attention/hopper/map.h"
#include "src/ops/attention/hopper/short_kernels.h"

namespace tally::train::cuda {
namespace {

hopper::ShortSequences sequences_of(const AttentionArgs& a) {
  const AttentionShape& shape = a.shape;
  hopper::ShortSequences s{};
  s.count = static_cast<int>(shape.batch);
  if (shape.documents) {
    s.cu_seqlens = a.cu_seqlens.as<int32_t>();
    s.count = static_cast<int>(std::min(a.cu_seqlens.dim(0) - 1, shape.most_documents));
  }
  s.batch = static_cast<int>(shape.batch);
  s.tokens = static_cast<int>(shape.tokens);
  s.heads = static_cast<int>(shape.heads);
  s.scale = static_cast<float>(shape.scale);
  s.mask_groups = shape.documents ? hopper::block_rows / 8 : s.tokens / 8;
  if (shape.dropout > 0) {
    s.dropout = {a.seed, dropout_threshold(shape.dropout),
                 static_cast<float>(dropout_scale(shape.dropout))};
  }
  return s;
}

}  // namespace

bool short_attention_serves(const CudaCompute& c, const AttentionShape& shape, DType dtype) {
  static_assert(hopper::head_dim == hopper_head_dim && hopper::block_rows == hopper_block_rows);
  return short_attention_fits(c.options, shape, dtype, c.stream.capability()) &&
         hopper::short_kernels.forward != nullptr && tensor_map_encode();
}

void short_attention_forward(CudaStream& s, const AttentionArgs& a) {
  hopper::ShortForward p{};
  const int64_t columns = a.shape.heads * hopper::head_dim;
  p.qkv = head_map("attention_forward", a.q.data, a, 3 * columns, hopper::block_rows);
  p.out = a.out.data;
  p.stats = a.stats.as<float>();
  p.sequences = sequences_of(a);
  CUDA_CHECK(hopper::short_kernels.forward(p, a.dtype, s.sms(), s.stream()));
}

void short_attention_backward(CudaStream& s, const AttentionArgs& a,
                              const AttentionGradients& gradients) {
  hopper::ShortBackward p{};
  const int64_t columns = a.shape.heads * hopper::head_dim;
  p.qkv = head_map("attention_backward", a.q.data, a, 3 * columns, hopper::block_rows);
  p.out = head_map("attention_backward", a.out.data, a, columns, hopper::block_rows);
  p.dout = head_map("attention_backward", gradients.dout.data, a, columns, hopper::block_rows);
  p.stats = a.stats.as<float>();
  p.dqkv = gradients.dq.data;
  p.sequences = sequences_of(a);
  CUDA_CHECK(hopper::short_kernels.backward(p, a.dtype, s.sms(), s.stream()));
}

}  // namespace tally::train::cuda
