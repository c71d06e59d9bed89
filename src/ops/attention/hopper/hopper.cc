#include "src/ops/attention/hopper/hopper.h"

#include <algorithm>

#include "src/device/cuda/check.h"
#include "src/device/cuda/tensor_map.h"
#include "src/ops/attention/gpu_versions.h"
#include "src/ops/attention/hopper/kernels.h"
#include "src/ops/attention/hopper/map.h"
#include "src/ops/column_sums.h"

namespace tally::train::cuda {
namespace {

constexpr int64_t bytes_together = 16 << 20;  // size of K and V of heads that run together, for L2

size_t row_values(const AttentionShape& a) {
  return static_cast<size_t>(a.batch * a.heads * a.tokens);
}

// The fields that both passes have.
template <typename Pass>
Pass pass_of(const AttentionArgs& a) {
  const AttentionShape& shape = a.shape;
  Pass p{};
  p.batch = static_cast<int>(shape.batch);
  p.heads = static_cast<int>(shape.heads);
  p.kv_heads = static_cast<int>(shape.kv_heads());
  p.tokens = static_cast<int>(shape.tokens);
  p.blocks = p.tokens / hopper::block_rows;
  p.causal = shape.causal();
  p.scale = static_cast<float>(shape.scale);
  if (shape.dropout > 0) {
    p.dropout = {a.seed, dropout_threshold(shape.dropout),
                 static_cast<float>(dropout_scale(shape.dropout))};
  }
  return p;
}

const hopper::Kernels& kernels_of(const AttentionShape& a) {
  return a.head_dim == hopper::wide_head_dim ? hopper::wide_kernels : hopper::kernels;
}

// Takes as many heads as fit, in groups of nearly equal size.
int heads_together(const AttentionShape& shape) {
  const int64_t bytes = shape.tokens * shape.head_dim * 2 * 2, all = shape.batch * shape.heads;
  const int64_t fit =
      std::max<int64_t>(1, bytes_together / bytes) * (shape.heads / shape.kv_heads());
  const int64_t groups = (all + fit - 1) / fit;
  return static_cast<int>((all + groups - 1) / groups);
}

// Takes as many heads of K and V as have three blocks an SM, so that the last of them end together,
// in groups of nearly equal size.
int key_heads_together(const AttentionShape& shape, int sms) {
  const int64_t blocks = shape.tokens / hopper::block_rows, all = shape.batch * shape.kv_heads();
  const int64_t groups = std::max<int64_t>(1, all * blocks / (3 * sms));
  return static_cast<int>((all + groups - 1) / groups);
}

}  // namespace

bool hopper_attention_serves(const CudaCompute& c, const AttentionShape& shape, DType dtype) {
  static_assert(hopper::head_dim == hopper_head_dim && hopper::block_rows == hopper_block_rows &&
                hopper::wide_head_dim == hopper_wide_head_dim);
  return hopper_attention_fits(c.options, shape, dtype, c.stream.capability()) && hopper::built() &&
         tensor_map_encode();
}

size_t hopper_attention_workspace(const AttentionShape& shape) {
  return hopper_attention_bytes(shape);
}

void hopper_attention_forward(CudaStream& s, const AttentionArgs& a) {
  auto p = pass_of<hopper::Forward>(a);
  const int64_t columns = a.shape.heads * a.shape.head_dim;
  p.qkv = head_map("attention_forward", a.q.data, a, a.shape.row(), hopper::block_rows);
  p.out = head_map("attention_forward", a.out.data, a, columns, hopper::store_rows);
  p.stats = a.stats.as<float>();
  p.next_item = static_cast<unsigned*>(a.workspace.data);
  p.group = heads_together(a.shape);
  CUDA_CHECK(kernels_of(a.shape).forward(p, a.dtype, s.sms(), s.stream()));
}

void hopper_attention_backward(CudaStream& s, const AttentionArgs& a,
                               const AttentionGradients& gradients) {
  const AttentionShape& shape = a.shape;
  auto p = pass_of<hopper::Backward>(a);
  const int64_t columns = shape.heads * shape.head_dim;
  const int box = shape.head_dim == hopper::head_dim ? hopper::block_rows : hopper::wide_turn_rows;
  p.qkv = head_map("attention_backward", a.q.data, a, a.shape.row(), box);
  p.dout = head_map("attention_backward", gradients.dout.data, a, columns, box);
  p.group = key_heads_together(shape, s.sms());
  p.out = a.out.data;
  p.dout_data = gradients.dout.data;
  p.stats = a.stats.as<float>();
  p.dq_sums = static_cast<float*>(a.workspace.data);
  p.base2_stats = p.dq_sums + row_values(shape) * static_cast<size_t>(shape.head_dim);
  p.delta = p.base2_stats + row_values(shape);
  p.next_item = reinterpret_cast<unsigned*>(p.delta + row_values(shape));
  p.dqkv = gradients.dq.data;
  const Out& q_sums = gradients.q_sums;
  const int64_t parts = shape.batch * shape.tokens / (hopper::block_rows / 2);
  const bool room = static_cast<size_t>(parts * columns) * sizeof(float) <= s.workspace_bytes();
  if (q_sums.defined() && room) p.q_parts = static_cast<float*>(s.workspace());
  const hopper::Kernels& kernels = kernels_of(shape);
  CUDA_CHECK(kernels.prepare(p, a.dtype, s.stream()));
  CUDA_CHECK(kernels.multiply(p, a.dtype, s.sms(), s.stream()));
  CUDA_CHECK(kernels.finish(p, a.dtype, s.stream()));
  if (!q_sums.defined()) return;
  if (room) {
    add_shares(s, {p.q_parts, parts, columns}, q_sums);
  } else {
    column_sums(s, Tensor(p.dqkv, a.dtype, {shape.batch * shape.tokens, shape.row()}), 0, q_sums);
  }
}

}  // namespace tally::train::cuda
