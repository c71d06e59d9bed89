#include "src/ops/attention/hopper.h"

#include <fmt/format.h>

#include <algorithm>

#include "src/device/cuda/check.h"
#include "src/device/cuda/tensor_map.h"
#include "src/device/errors.h"
#include "src/ops/attention/hopper_kernels.h"
#include "src/ops/linear/passes.h"

namespace tally::train::cuda {
namespace {

constexpr size_t counter_bytes = 256;         // next_item
constexpr int64_t bytes_together = 16 << 20;  // of K and V of heads that run together, for L2

size_t row_values(const AttentionShape& a) {
  return static_cast<size_t>(a.batch * a.heads * a.tokens);
}

// A tensor map of rows of `columns` 16-bit values; boxes have `box_rows` rows and a head's columns.
void describe(CUtensorMap* map, const char* op, void* data, const AttentionArgs& args,
              int64_t columns, cuuint32_t box_rows) {
  const TensorMapEncode encode = tensor_map_encode();
  const int64_t rows = args.shape.batch * args.shape.tokens;
  const cuuint64_t sizes[] = {static_cast<cuuint64_t>(columns), static_cast<cuuint64_t>(rows)};
  const cuuint64_t stride = static_cast<cuuint64_t>(columns) * 2;
  const cuuint32_t box[] = {hopper::head_dim, box_rows}, steps[] = {1, 1};
  const CUtensorMapDataType type = args.dtype == DType::bf16 ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16
                                                             : CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
  if (encode &&
      encode(map, type, 2, data, sizes, &stride, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
             CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
             CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS)
    return;
  throw DeviceError(
      fmt::format("{}: the driver cannot describe a tensor of {} rows of {} values for the copy "
                  "engine (hopper_attention)",
                  op, rows, columns));
}

// The fields that both passes have.
template <typename Pass>
Pass pass_of(const AttentionShape& shape) {
  Pass p{};
  p.batch = static_cast<int>(shape.batch);
  p.heads = static_cast<int>(shape.heads);
  p.tokens = static_cast<int>(shape.tokens);
  p.blocks = p.tokens / hopper::block_rows;
  p.causal = shape.causal();
  p.scale = static_cast<float>(shape.scale);
  return p;
}

// As many heads as fit, in groups of nearly equal size.
int heads_together(const AttentionShape& shape) {
  const int64_t bytes = shape.tokens * hopper::head_dim * 2 * 2, all = shape.batch * shape.heads;
  const int64_t fit = std::max<int64_t>(1, bytes_together / bytes), groups = (all + fit - 1) / fit;
  return static_cast<int>((all + groups - 1) / groups);
}

}  // namespace

bool hopper_attention_serves(const CudaCompute& c, const AttentionShape& shape, DType dtype) {
  constexpr int64_t most = INT32_MAX;  // elements of qkv, whose rows and blocks are numbered by int
  const int64_t rows = shape.batch * shape.tokens;
  const bool bits_16 = dtype == DType::bf16 || dtype == DType::f16;
  return c.options.hopper_attention && !c.options.deterministic && hopper::built() &&
         c.stream.capability() == 90 && bits_16 && shape.head_dim == hopper::head_dim &&
         !shape.grouped() && shape.dropout == 0 && static_cast<float>(shape.scale) > 0 &&
         rows > 0 && shape.heads > 0 && shape.tokens % hopper::block_rows == 0 &&
         rows * shape.heads * 3 * hopper::head_dim <= most && tensor_map_encode();
}

size_t hopper_attention_workspace(const AttentionShape& shape) {
  return row_values(shape) * (hopper::head_dim + 2) * sizeof(float) + counter_bytes;
}

void hopper_attention_forward(CudaStream& s, const AttentionArgs& a) {
  auto p = pass_of<hopper::Forward>(a.shape);
  const int64_t columns = a.shape.heads * hopper::head_dim;
  describe(&p.qkv, "attention_forward", a.q.data, a, 3 * columns, hopper::block_rows);
  describe(&p.out, "attention_forward", a.out.data, a, columns, hopper::store_rows);
  p.stats = a.stats.as<float>();
  p.next_item = static_cast<unsigned*>(a.workspace.data);
  p.group = heads_together(a.shape);
  CUDA_CHECK(hopper::forward(p, a.dtype, s.sms(), s.stream()));
}

void hopper_attention_backward(CudaStream& s, const AttentionArgs& a,
                               const AttentionGradients& gradients) {
  const AttentionShape& shape = a.shape;
  auto p = pass_of<hopper::Backward>(shape);
  const int64_t columns = shape.heads * hopper::head_dim;
  describe(&p.qkv, "attention_backward", a.q.data, a, 3 * columns, hopper::block_rows);
  describe(&p.dout, "attention_backward", gradients.dout.data, a, columns, hopper::block_rows);
  p.out = a.out.data;
  p.dout_data = gradients.dout.data;
  p.stats = a.stats.as<float>();
  p.dq_sums = static_cast<float*>(a.workspace.data);
  p.base2_stats = p.dq_sums + row_values(shape) * hopper::head_dim;
  p.delta = p.base2_stats + row_values(shape);
  p.next_item = reinterpret_cast<unsigned*>(p.delta + row_values(shape));
  p.dqkv = gradients.dq.data;
  const Tensor& q_sums = gradients.q_sums;
  const int64_t parts = shape.batch * shape.tokens / (hopper::block_rows / 2);
  const bool room = static_cast<size_t>(parts * columns) * sizeof(float) <= s.workspace_bytes();
  if (q_sums.defined() && room) p.q_parts = static_cast<float*>(s.workspace());
  CUDA_CHECK(hopper::prepare(p, a.dtype, s.stream()));
  CUDA_CHECK(hopper::multiply(p, a.dtype, s.sms(), s.stream()));
  CUDA_CHECK(hopper::finish(p, a.dtype, s.stream()));
  if (!q_sums.defined()) return;
  if (room) {
    add_parts(s, p.q_parts, parts, columns, q_sums);
  } else {
    column_sums(s, Tensor(p.dqkv, a.dtype, {shape.batch * shape.tokens, 3 * columns}), 0, q_sums);
  }
}

}  // namespace tally::train::cuda
