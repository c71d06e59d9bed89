#include "src/ops/attention/attention.h"

#include "src/ops/attention/backends.h"
#include "src/ops/dispatch.h"

namespace tally::train {
namespace {

// Part 0 (Q), 1 (K) or 2 (V) of packed rows.
HeadRows part_of(const AttentionShape& s, const Tensor& qkv, int64_t part) {
  const int64_t heads = part == 0 ? 0 : s.heads + (part - 1) * s.kv_heads();
  return {
      static_cast<char*>(qkv.data) + static_cast<size_t>(heads * s.head_dim) * size_of(qkv.dtype),
      s.row()};
}

}  // namespace

AttentionArgs packed_attention(const AttentionShape& shape, const Tensor& qkv, const Tensor& out,
                               const Tensor& stats, const Tensor& workspace, DropoutSeed seed) {
  AttentionArgs a;
  a.shape = shape;
  a.dtype = qkv.dtype;
  a.q = part_of(shape, qkv, 0);
  a.k = part_of(shape, qkv, 1);
  a.v = part_of(shape, qkv, 2);
  a.out = out;
  a.stats = stats;
  a.workspace = workspace;
  a.seed = seed;
  return a;
}

AttentionGradients packed_gradients(const AttentionShape& shape, const Tensor& dout,
                                    const Tensor& dqkv, const Tensor& q_sums) {
  return {dout, part_of(shape, dqkv, 0), part_of(shape, dqkv, 1), part_of(shape, dqkv, 2), q_sums};
}

bool is_packed(const AttentionShape& shape, DType dtype, const HeadRows& q, const HeadRows& k,
               const HeadRows& v) {
  const auto bytes = [&](int64_t heads) {
    return heads * shape.head_dim * static_cast<int64_t>(size_of(dtype));
  };
  return q.stride == shape.row() && k.stride == q.stride && v.stride == q.stride &&
         static_cast<char*>(k.data) - static_cast<char*>(q.data) == bytes(shape.heads) &&
         static_cast<char*>(v.data) - static_cast<char*>(k.data) == bytes(shape.kv_heads());
}

const char* attention_backend(const Compute& c, const AttentionShape& shape, DType dtype) {
  return TALLY_BACKEND(c.stream, attention_backend(c, shape, dtype));
}

size_t attention_workspace(const Compute& c, const AttentionShape& shape, DType dtype) {
  return TALLY_BACKEND(c.stream, attention_workspace(c, shape, dtype));
}

void attention_forward(const Compute& c, const AttentionArgs& args) {
  TALLY_BACKEND(c.stream, attention_forward(c, args));
}

void attention_backward(const Compute& c, const AttentionArgs& args,
                        const AttentionGradients& gradients) {
  TALLY_BACKEND(c.stream, attention_backward(c, args, gradients));
}

void rotary(Stream& s, const Tensor& qkv, int64_t kv_heads, const Tensor& positions, double base,
            double fraction, bool inverse) {
  TALLY_BACKEND(s, rotary(s, qkv, kv_heads, positions, base, fraction, inverse));
}

}  // namespace tally::train
