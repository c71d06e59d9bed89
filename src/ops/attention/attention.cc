#include "src/ops/attention/attention.h"

namespace tally::train {
namespace {

// Part 0 (Q), 1 (K) or 2 (V) of packed rows.
template <typename Self, typename Data>
Heads<Data> part_of(const AttentionShape& s, const View<Self, Data>& qkv, int64_t part) {
  const int64_t heads = part == 0 ? 0 : s.heads + (part - 1) * s.kv_heads();
  const size_t bytes = static_cast<size_t>(heads * s.head_dim) * size_of(qkv.dtype);
  return {qkv.template as<char>() + bytes, s.row()};
}

}  // namespace

AttentionArgs packed_attention(const AttentionShape& shape, const In& qkv,
                               const AttentionResults& results, const Out& workspace,
                               DropoutSeed seed) {
  AttentionArgs a;
  a.shape = shape;
  a.dtype = qkv.dtype;
  a.q = part_of(shape, qkv, 0);
  a.k = part_of(shape, qkv, 1);
  a.v = part_of(shape, qkv, 2);
  a.out = results.out;
  a.stats = results.stats;
  a.workspace = workspace;
  a.seed = seed;
  return a;
}

AttentionGradients packed_gradients(const AttentionShape& shape, const In& dout, const Out& dqkv,
                                    const Out& q_sums) {
  return {dout, part_of(shape, dqkv, 0), part_of(shape, dqkv, 1), part_of(shape, dqkv, 2), q_sums};
}

bool is_packed(const AttentionShape& shape, DType dtype, const HeadsIn& q, const HeadsIn& k,
               const HeadsIn& v) {
  const auto bytes = [&](int64_t heads) {
    return heads * shape.head_dim * static_cast<int64_t>(size_of(dtype));
  };
  const auto at = [](const HeadsIn& heads) { return static_cast<const char*>(heads.data); };
  return q.stride == shape.row() && k.stride == q.stride && v.stride == q.stride &&
         at(k) - at(q) == bytes(shape.heads) && at(v) - at(k) == bytes(shape.kv_heads());
}

}  // namespace tally::train
