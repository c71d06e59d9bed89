#include "src/nn/block.h"

namespace tally::train {
namespace {

struct ActivationMaker {
  const BlockSizes& sizes;
  Arena* arena;

  Tensor make(std::initializer_list<int64_t> shape, const char* what) const {
    return arena->make(sizes.type, shape, what);
  }
  Tensor wide(std::initializer_list<int64_t> shape, const char* what) const {
    return arena->make(sizes.type == DType::f64 ? DType::f64 : DType::f32, shape, what);
  }
  Tensor hidden(const char* what) const { return make({sizes.part(), sizes.hidden}, what); }
  Tensor ffn(int64_t width) const { return make({sizes.tokens(), width}, "MLP activations"); }

  // The part that selective recomputation recomputes: three cheap passes.
  void cheap(BlockActivations* a) const {
    a->in.y = hidden("LayerNorm output");
    a->mid.y = hidden("LayerNorm output");
    a->mlp.act = ffn(sizes.ffn);
  }
  // The part that only full recomputation recomputes.
  void costly(BlockActivations* a) const {
    const AttentionGeometry& g = sizes.attention;
    for (NormActivations* n : {&a->in, &a->mid}) {
      if (sizes.spec.norm == NormKind::layer)
        n->mean = wide({sizes.part()}, "LayerNorm statistics");
      n->rstd = wide({sizes.part()}, "LayerNorm statistics");
    }
    a->attention.qkv =
        make({g.batch, g.tokens, g.qkv_heads(), g.head_dim}, "queries, keys and values");
    a->attention.out = make({sizes.tokens(), g.width()}, "attention output");
    a->attention.stats = wide({g.batch, g.heads, g.tokens}, "attention statistics");
    if (g.qk_norm) {
      const int64_t heads = g.heads + g.kv_heads;
      a->attention.raw = make({sizes.tokens(), heads, g.head_dim}, "queries and keys before norm");
      a->attention.rstd = wide({sizes.tokens(), heads}, "QK norm statistics");
    }
    a->mid.r = hidden("residual stream");
    a->mlp.saved = ffn(sizes.fc_width());
  }
};

}  // namespace

BlockActivations make_shared_activations(const BlockSizes& sizes, Arena* arena) {
  const ActivationMaker maker{sizes, arena};
  BlockActivations shared;
  if (sizes.recompute != Recompute::none) maker.cheap(&shared);
  if (sizes.recompute == Recompute::full) maker.costly(&shared);
  return shared;
}

BlockActivations make_block_activations(const BlockSizes& sizes, const BlockActivations& shared,
                                        Arena* arena) {
  const ActivationMaker maker{sizes, arena};
  BlockActivations a = shared;
  a.in.r = maker.hidden("residual stream");
  if (sizes.recompute != Recompute::full) maker.costly(&a);
  if (sizes.recompute == Recompute::none) maker.cheap(&a);
  if (!sizes.fp8) return a;
  for (Tensor* t :
       {&a.attention.x_amaxes, &a.attention.out_amaxes, &a.mlp.x_amaxes, &a.mlp.act_amaxes})
    *t = arena->make(DType::f32, {sizes.shards}, "magnitudes for FP8");
  return a;
}

NormActivations first_tokens(const NormActivations& reserved, int64_t tokens) {
  return {reserved.r.rows(0, tokens), reserved.y.rows(0, tokens), reserved.mean.rows(0, tokens),
          reserved.rstd.rows(0, tokens)};
}

BlockActivations first_tokens(const BlockActivations& reserved, const Sequences& sequences) {
  const int64_t b = sequences.batch, t = sequences.tokens;
  const Tensor &qkv = reserved.attention.qkv, &stats = reserved.attention.stats;
  BlockActivations a;
  a.in = first_tokens(reserved.in, sequences.count());
  a.attention.qkv = Tensor(qkv.data, qkv.dtype, {b, t, qkv.dim(2), qkv.dim(3)});
  a.attention.out = reserved.attention.out.rows(0, sequences.count());
  a.attention.raw = reserved.attention.raw.rows(0, sequences.count());
  a.attention.rstd = reserved.attention.rstd.rows(0, sequences.count());
  a.attention.stats = Tensor(stats.data, stats.dtype, {b, stats.dim(1), t});
  a.mid = first_tokens(reserved.mid, sequences.count());
  a.attention.x_amaxes = reserved.attention.x_amaxes;
  a.attention.out_amaxes = reserved.attention.out_amaxes;
  a.mlp = reserved.mlp;
  for (Tensor* wide : {&a.mlp.saved, &a.mlp.act}) *wide = wide->rows(0, sequences.count());
  return a;
}

Block::Block(const ParameterTable& table, const BlockSizes& sizes, double epsilon,
             const ActivationForm& activation, int64_t layer, const Tensor& sums)
    : in_norm_(table, {Role::in_norm, layer}, epsilon),
      mid_norm_(table, {Role::mid_norm, layer}, epsilon),
      attention_(table, sizes.attention, layer, sums),
      mlp_(table, activation, layer),
      recompute_(sizes.recompute),
      post_norm_(sizes.post_norm()) {}

void Block::keep_in_fp8(const Fp8Scratch& form, Arena* arena) {
  const Fp8Scaling scaling = form.recipe.weights;
  const auto attention = attention_.matrices(), mlp = mlp_.matrices();
  for (Linear* w : {attention[0], attention[1], mlp[0], mlp[1]}) {
    const int64_t n = w->weight.value.dim(0), k = w->weight.value.dim(1);
    const auto scales = [&](int64_t rows, int64_t inner) {
      return arena->make(DType::f32, {fp8_scale_count(scaling, rows, inner)},
                         "scales of weights in FP8");
    };
    const Tensor of_rows = scales(n, k), gathered = w->weight.fp8.rows;
    w->fp8 = {gathered.defined() ? gathered : arena->make(form.forward, {n, k}, "weights in FP8"),
              arena->make(form.forward, {k, n}, "weights in FP8"), of_rows,
              scaling == Fp8Scaling::tensor ? of_rows : scales(k, n), scaling};
  }
}

void Block::forward(LayerContext* c, const BlockActivations& a, const NormedSum& out) const {
  attention_.forward(c, a.in.y, a.attention, residual(a.in), mid(a));
  mlp_.forward(*c, a.mid.y, a.mlp, residual(a.mid), out);
}

void Block::recompute(LayerContext* c, const BlockActivations& a) const {
  if (recompute_ == Recompute::none) return;
  in_norm_.forward(*c, a.in);
  if (recompute_ == Recompute::full) {
    attention_.forward(c, a.in.y, a.attention, residual(a.in), mid(a));
    return mlp_.activate(*c, a.mid.y, a.mlp);
  }
  mid_norm_.forward(*c, a.mid);
  mlp_.recompute_act(*c, a.mlp);
}

void Block::backward(const LayerContext& c, const BlockActivations& a,
                     const BackwardFlow& flow) const {
  mlp_.backward(c, a.mid.y, a.mlp, flow);
  attention_.projection().backward_sum(c, mid(a), flow);
  attention_.backward(c, a.in.y, a.attention, flow);
}

}  // namespace tally::train
