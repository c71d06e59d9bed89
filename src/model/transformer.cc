#include "src/model/transformer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>
#include <string>

#include "src/ops/norm/norm.h"

namespace tally::train {
namespace {

// SMs for updates that overlap with the forward pass: as many as move the updates' bytes in the
// pass's time. A parameter moves 30 bytes while the GEMMs do 2 operations for it and each token. An
// H200 does those at 650 TFLOP/s and moves 75 GB/s through one SM. SMs are reserved in pairs,
// because the GEMMs' kernels run on pairs. GEMMs in FP8 take 1 / 1.75 of the time: fewer SMs than
// that rule gives make attention wait for the update (bench/notes/fp8.md). 0: updates do not
// overlap, because they would take too many SMs, or because 32-bit GEMMs cannot reserve any.
int sms_for_updates(const Config& config, DType type, const Stream& stream) {
  constexpr double sm_tokens = 131072;
  if (!config.policy.fusions.deferred_update || !stream.device().is_gpu() || size_of(type) != 2)
    return 0;
  const double tokens = static_cast<double>(config.micro_batch * config.sequence);
  const auto pairs_for = [&](double speed) {
    return 2 * static_cast<int>(std::ceil(speed * sm_tokens / tokens / 2));
  };
  if (pairs_for(1) > 16) return 0;
  return pairs_for(config.fp8.on() ? 1.75 : 1);
}

// A block's matrices in the reverse of their order in memory, which is the order in which blocks
// finish their backward pass.
std::array<const Linear*, 4> matrices_of(const Block& block) {
  return {&block.mlp().projection(), &block.mlp().fc(), &block.attention().projection(),
          &block.attention().qkv()};
}

}  // namespace

DType wide_type(DType type) {
  return type == DType::f64 ? DType::f64 : DType::f32;
}

BlockSizes block_sizes(const Config& config, const ModelPart& part, DType type) {
  BlockSizes s;
  s.attention.batch = config.micro_batch;
  s.attention.tokens = config.sequence;
  s.attention.heads = config.model.heads / part.shards;
  s.attention.kv_heads = config.model.kv_heads() / part.shards;
  s.attention.head_dim = config.model.head_dim();
  s.attention.mask = config.model.block.causal ? AttentionMask::causal : AttentionMask::none;
  s.attention.positions = config.model.positions;
  s.attention.rotary_angles = {config.model.rotary_base, config.model.rotary_scaling};
  s.attention.qk_norm = config.model.block.qk_norm;
  s.attention.epsilon = config.model.layernorm_epsilon;
  s.attention.rotary_fraction = config.model.rotary_fraction;
  s.hidden = config.model.hidden;
  s.ffn = config.model.ffn / part.shards;
  s.spec = config.model.block;
  s.part_count = config.sequence_parallel ? part.shards : 1;
  s.type = type;
  s.recompute = config.recompute;
  s.shards = part.shards;
  s.fp8 = config.fp8.on();
  return s;
}

Transformer::Transformer(const Config& config, const ModelPart& part, const ParameterTable& table,
                         Stream& stream, Communicator* tensor, const BlockSizes& sizes,
                         bool documents)
    : config_(config.model),
      fp8_(config.fp8),
      part_(part),
      documents_(documents),
      type_(table.weights().dtype),
      sizes_(sizes),
      context_{.compute = {stream, {config.policy}}},
      arena_(stream),
      update_sms_(sms_for_updates(config, type_, stream)),
      // A CPU updates with all its cores, at the same points.
      updates_(part.first && part.last && config.policy.fusions.deferred_update &&
               (update_sms_ > 0 || !stream.device().is_gpu())),
      // Selective recomputation computes the activation's output again from its input.
      saves_derivative_(config.policy.fusions.gelu_derivative &&
                        config.recompute != Recompute::selective) {
  if (part.shards > 1) context_.tensor.group = tensor;
  context_.tensor.sequence = sizes_.part_count > 1;
  // Each process has the column sums of its own tokens only. In FP8 the sums of a product are not
  // those of its factors.
  context_.qkv_bias_sums = config.policy.fusions.qkv_bias && !context_.tensor.sequence &&
                           sizes_.spec.biases && !sizes_.fp8;
  side_ = SideStream::make(stream, update_sms_ > 0);
  context_.side = side_.get();
}

Tensor Transformer::reserve_scratch(int64_t head_elements) {
  const AttentionGeometry& g = sizes_.attention;
  const int64_t m = sizes_.tokens(), part = sizes_.part(), c = config_.hidden;
  // The gradient at attention's output, [M,H D], takes the memory of one at a layer's input, [M,C].
  const int64_t widest = std::max(c, g.width());
  const auto make = [&](DType type, std::initializer_list<int64_t> shape, const char* what) {
    return arena_.make(type, shape, what);
  };
  shared_ = make_shared_activations(sizes_, &arena_);
  flow_.post_norm = sizes_.post_norm();
  flow_.residual = make(type_, {part, c}, "gradient of the residual stream");
  const bool sequence = context_.tensor.sequence;
  flow_.normed =
      make(type_, {part * (sequence ? c : widest)}, "gradient of a branch").view({part, c});
  context_.delta = flow_.normed;
  if (config_.hidden_dropout > 0) flow_.branch = make(type_, {part, c}, "gradient under dropout");
  if (sequence) {
    context_.tensor.gathered = make(type_, {m, c}, "all tokens of a part");
    context_.tensor.second = make(type_, {m, c}, "all tokens of a part");
    if (gathers_casts()) {
      context_.tensor.gathered_casts = make(DType::u8, {m * c}, "all tokens of a part");
      context_.tensor.second_casts = make(DType::u8, {m * c}, "all tokens of a part");
      context_.tensor.gradient_casts = make(DType::u8, {m * c}, "all tokens of a part");
    }
    context_.tensor.partial = make(type_, {m * widest}, "partial sums").view({m, c});
  }
  const Tensor both = make(type_, {std::max(head_elements, m * g.qkv_width())}, "logits");
  flow_.qkv = both.view({g.batch, g.tokens, g.qkv_heads(), g.head_dim});
  projection_sums_ = make(wide_type(type_), {part_.layers, c}, "sums of gradients");
  Dropout dropout;
  dropout.attention = config_.attention_dropout;
  // Encoders may meet micro batches with documents and without.
  size_t attention = 0;
  for (const bool documents : {documents_, documents_ && g.most_documents == 0})
    attention = std::max(
        attention, attention_workspace(context_.compute,
                                       g.shape(g.batch, g.tokens, dropout, documents), type_));
  if (sizes_.fp8) reserve_fp8();
  context_.workspace = make(DType::u8, {static_cast<int64_t>(attention)}, "workspace");
  return both;
}

// Whether a layer may gather its tokens as casts (Linear::gather_input).
bool Transformer::gathers_casts() const {
  return sizes_.fp8 && (fp8_.recipe.activations == Fp8Scaling::tensor ||
                        fp8_.recipe.gradients == Fp8Scaling::tensor);
}

void Transformer::reserve_fp8() {
  Fp8Scratch& s = context_.fp8;
  const int64_t m = sizes_.tokens(), in = sizes_.widest_input(), out = sizes_.widest_output();
  s.recipe = fp8_.recipe;
  s.backward = fp8_.gradients();
  s.x = arena_.make(DType::u8, {m * in}, "operands in FP8");
  s.dy_rows = arena_.make(DType::u8, {m * out}, "operands in FP8");
  s.dy_columns = arena_.make(DType::u8, {m * out}, "operands in FP8");
  const auto scales = [&](int64_t count) {
    return arena_.make(DType::f32, {count}, "scales of operands in FP8");
  };
  const Fp8Scaling of_x = s.recipe.activations, of_dy = s.recipe.gradients;
  s.x_scales = scales(std::max(fp8_scale_count(of_x, m, in), fp8_scale_count(of_x, in, m)));
  s.dy_row_scales = scales(fp8_scale_count(of_dy, m, out));
  s.dy_column_scales =
      of_dy == Fp8Scaling::tensor ? s.dy_row_scales : scales(fp8_scale_count(of_dy, out, m));
  s.amax = arena_.make(DType::f32, {1}, "magnitudes for FP8");
  s.amaxes = arena_.make(DType::f32, {sizes_.shards}, "magnitudes for FP8");
}

std::vector<Tensor> Transformer::exchanged() const {
  const TensorParallel& t = context_.tensor;
  if (!t.divides()) return {};
  if (t.sequence && gathers_casts())
    return {t.gathered, t.second, t.gathered_casts, t.second_casts, t.gradient_casts, t.partial};
  if (t.sequence) return {t.gathered, t.second, t.partial};
  return {flow_.normed};
}

void Transformer::bind_blocks(const ParameterTable& table) {
  const MlpActivation kind = sizes_.spec.mlp;
  const ActivationForm fastest{
      kind, saves_derivative_
                ? faster_saved_value(context_.compute, type_, sizes_.ffn, config_.hidden, kind)
                : SavedValue::input};
  for (int64_t l = 0; l < part_.layers; ++l) {
    const int64_t layer = part_.first_layer + l;
    const bool fp8 = fp8_.serves(layer, config_.layers);
    const ActivationForm form = fp8 ? ActivationForm{kind, SavedValue::input} : fastest;
    blocks_.emplace_back(table, sizes_, config_.layernorm_epsilon, form, layer,
                         projection_sums_.rows(l, 1).view({config_.hidden}));
    if (fp8) blocks_.back().keep_in_fp8(context_.fp8, &arena_);
  }
  if (part_.last)
    final_norm_ = Norm(table, {Role::in_norm, config_.layers}, config_.layernorm_epsilon);
  bind_vectors(table);
  if (updates_) bind_update(table);
}

// The gradients of this part's biases and norms, as few ranges. Other parts of the model may lie in
// the same table.
void Transformer::bind_vectors(const ParameterTable& table) {
  int64_t first = 0, last = 0;
  const auto end_range = [&] {
    if (first < last) vector_gradients_.push_back(table.gradients({first, last}));
  };
  for (size_t i = 0; i < table.all().size(); ++i) {
    const Parameter& p = table.all()[i];
    if (p.group == ParameterGroup::decayed || !part_.has(p, config_)) continue;
    const int64_t end = i + 1 < table.all().size() ? table.all()[i + 1].offset : table.elements();
    if (p.offset != last) {
      end_range();
      first = p.offset;
    }
    last = end;
  }
  end_range();
}

// Defines the pieces. The piece that overlaps with block l ends where block l + 1's attention
// projection begins. The last block's piece includes what lies behind the blocks: an untied head.
void Transformer::bind_update(const ParameterTable& table) {
  std::vector<int64_t> pieces;
  for (int64_t l = 1; l < config_.layers; ++l)
    pieces.push_back(table.find({Role::projection, l}).offset);
  pieces.push_back(table.end_of(table.find({Role::mlp_projection, config_.layers - 1})));
  pieces.push_back(table.decayed_elements());
  update_ = std::make_unique<DeferredUpdate>(std::move(pieces), update_sms_);
}

std::unique_ptr<ActivationSet> Transformer::make_activations() {
  auto a = std::make_unique<Activations>(context_.compute.stream);
  const auto residual = [&](const char* what) {
    return a->arena.make(type_, {sizes_.part(), sizes_.hidden}, what);
  };
  const auto statistics = [&] {
    return a->arena.make(wide_type(type_), {sizes_.part()}, "LayerNorm statistics");
  };
  for (int64_t l = 0; l < part_.layers; ++l)
    a->reserved.push_back(make_block_activations(sizes_, shared_, &a->arena));
  if (part_.last) {
    a->reserved_final.r = residual("residual stream");
    if (sizes_.spec.norm == NormKind::layer) a->reserved_final.mean = statistics();
    a->reserved_final.rstd = statistics();
    a->reserved_final.y = flow_.residual;
  } else {
    a->output = residual("output of a stage");
  }
  if (!part_.first) a->input = a->reserved.front().in.r;
  if (!part_.first || !part_.last) a->gradient = residual("gradient between stages");
  a->blocks = a->reserved;
  a->final = a->reserved_final;
  ++sets_;
  return a;
}

Sequences Transformer::sequences_of(const Batch& batch) const {
  return {batch.ids.dim(0), batch.ids.dim(1), batch.positions, batch.cu_seqlens};
}

Dropout Transformer::dropout_of(const Pass& pass) const {
  if (!pass.dropout.state && pass.dropout.value == 0) return {};
  const auto shard = static_cast<uint64_t>(part_.shard);
  return {config_.hidden_dropout, config_.attention_dropout, pass.dropout, shard,
          context_.tensor.sequence ? shard : 0};
}

LossFactor Transformer::loss_factor(const Activations& a, size_t head, int64_t labels) {
  if (a.pass.counted) return {a.pass.weight, a.pass.counted + head};
  const int64_t counted = a.batch.counted[head] < 0 ? labels : a.batch.counted[head];
  return counted > 0 ? a.pass.weight / static_cast<double>(counted) : 0.0;
}

void Transformer::take(const Batch& batch, const Pass& pass, Activations* a) const {
  check(batch);
  a->batch = batch;
  a->pass = pass;
  a->sequences = sequences_of(batch);
  const AttentionGeometry& g = sizes_.attention;
  if (a->sequences.batch == g.batch && a->sequences.tokens == g.tokens) {
    a->blocks = a->reserved;
    a->final = a->reserved_final;
    return;
  }
  for (size_t l = 0; l < blocks_.size(); ++l)
    a->blocks[l] = first_tokens(a->reserved[l], a->sequences);
  a->final = first_tokens(a->reserved_final, a->sequences.count());
}

BackwardFlow Transformer::flow_of(const Activations& a) const {
  BackwardFlow flow = flow_;
  if (a.gradient.defined()) flow.residual = a.gradient;
  flow.qkv.shape[0] = a.sequences.batch;
  flow.qkv.shape[1] = a.sequences.tokens;
  if (a.sequences.count() == sizes_.tokens()) return flow;
  for (Tensor* t : {&flow.residual, &flow.normed, &flow.branch})
    *t = t->rows(0, a.sequences.count());
  return flow;
}

void Transformer::enter(const Activations& a, const Dropout& dropout,
                        const DeferredUpdate* update) {
  context_.sequences = a.sequences;
  context_.dropout = dropout;
  context_.update = update;
}

void Transformer::forward(const Batch& batch, const Pass& pass, ActivationSet& set) {
  auto& a = static_cast<Activations&>(set);
  take(batch, pass, &a);
  const bool updates = batch.first && update_ && update_->active();
  enter(a, dropout_of(pass), updates ? update_.get() : nullptr);
  // No micro batch is marked as the first without Fusions::overwrite.
  context_.fp8.casts_weights = batch.first || !context_.fusions().overwrite;
  context_.fp8.gathered = batch.first && gathers_weights();
  run_blocks(a);
}

void Transformer::evaluate(const Batch& batch, const Pass& pass, ActivationSet& set) {
  auto& a = static_cast<Activations&>(set);
  take(batch, pass, &a);
  a.batch.counted = {1, 1};  // losses are added up
  a.pass.counted = nullptr;
  enter(a, Dropout(), nullptr);
  context_.fp8.casts_weights = true;
  context_.fp8.gathered = false;
  run_blocks(a);
  if (part_.last) evaluate_head(a);
}

void Transformer::run_blocks(Activations& a) {
  if (part_.first) embed_through(a, a.blocks.front().in.r);
  blocks_.front().in_norm().forward(context_, a.blocks.front().in);
  for (size_t l = 0; l < blocks_.size(); ++l) {
    if (a.batch.first) weights_are_needed(blocks_[l]);
    blocks_[l].forward(&context_, a.blocks[l], out_of(l, a));
  }
  if (context_.update) context_.update->finish(&context_);
  latest_ = &a;
}

// Processes add up what each has in the scratch that they map from each other (exchanged()), which
// is faster by more than a copy takes.
void Transformer::embed_through(const Activations& a, const Tensor& r) {
  const TensorParallel& t = context_.tensor;
  if (!t.divides() || t.sequence) return embed(a, r);
  embed(a, context_.delta);
  context_.compute.stream.copy(r.data, context_.delta.data, r.bytes());
}

// The sum after a block.
NormedSum Transformer::out_of(size_t block, const Activations& a) const {
  if (block + 1 < blocks_.size()) return blocks_[block + 1].in(a.blocks[block + 1]);
  if (part_.last) return {&final_norm_, a.final, false};
  return {nullptr, {a.output, {}, {}, {}}, true};
}

void Transformer::weights_are_needed(const Block& block) const {
  const auto matrices = matrices_of(block);
  for (auto w = matrices.rbegin(); w != matrices.rend(); ++w) weight_is_needed((*w)->weight);
}

// A step's first micro batch finds the last step's gradients. GEMMs overwrite the matrices'
// gradients; those that are summed otherwise start at zero.
void Transformer::start_gradients(bool first) {
  Stream& stream = context_.compute.stream;
  const auto clear = [&](const Tensor& t) { stream.fill_zero(t.data, t.bytes()); };
  context_.accumulate = !first;
  if (context_.qkv_bias_sums) clear(projection_sums_);
  if (!first) return;
  for (const Tensor& t : vector_gradients_) clear(t);
  clear_gradients();
}

void Transformer::backward(ActivationSet& set) {
  auto& a = static_cast<Activations&>(set);
  enter(a, dropout_of(a.pass), nullptr);
  context_.fp8.casts_weights = false;
  start_gradients(a.batch.first);
  const BackwardFlow flow = flow_of(a);
  if (part_.last) {
    if (!is_latest(a)) final_norm_.forward(context_, a.final);
    backward_head(a, flow.normed);
  }
  backward_blocks(a, flow);
  if (part_.first) backward_embedding(a, flow.residual);
  latest_ = nullptr;
}

void Transformer::backward_blocks(Activations& a, const BackwardFlow& flow) {
  for (size_t l = blocks_.size(); l-- > 0;) {
    const Block& block = blocks_[l];
    block.backward_out(context_, out_of(l, a), flow);
    if (l + 1 < blocks_.size()) gradients_are_final(blocks_[l + 1]);
    const bool still_there = is_latest(a) && l + 1 == blocks_.size();
    if (!still_there) block.recompute(&context_, a.blocks[l]);
    block.backward(context_, a.blocks[l], flow);
  }
  blocks_.front().in_norm().backward(context_, a.blocks.front().in, !sizes_.post_norm(), flow);
  gradients_are_final(blocks_.front());
}

void Transformer::gradients_are_final(const Block& block) const {
  if (!reports_gradients()) return;
  for (const Linear* w : matrices_of(block)) gradient_is_final(w->weight);
}

std::vector<int> Transformer::reported_parameters() const {
  std::vector<int> ids;
  for (auto block = blocks_.rbegin(); block != blocks_.rend(); ++block)
    for (const Linear* w : matrices_of(*block)) ids.push_back(w->weight.id);
  return ids;
}

}  // namespace tally::train
