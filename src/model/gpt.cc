#include "src/model/gpt.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>
#include <string>

#include "src/ops/embedding/embedding.h"
#include "src/ops/norm/norm.h"

namespace tally::train {
namespace {

DType wide(DType type) {
  return type == DType::f64 ? DType::f64 : DType::f32;
}

// SMs for updates that overlap with the forward pass: as many as move the updates' bytes in the
// pass's time. A parameter moves 30 bytes while the GEMMs do 2 operations for it and each token. An
// H200 does those at 650 TFLOP/s and moves 75 GB/s through one SM. SMs are reserved in pairs,
// because the GEMMs' kernels run on pairs. 0: updates do not overlap, because they would take too
// many SMs, or because 32-bit GEMMs cannot reserve any.
int sms_for_updates(const Config& config, DType type, const Stream& stream) {
  constexpr double sm_tokens = 131072;
  if (!config.fusions.deferred_update || !stream.device().is_cuda() || size_of(type) != 2) return 0;
  const double tokens = static_cast<double>(config.micro_batch * config.sequence);
  const int few = 2 * static_cast<int>(std::ceil(sm_tokens / tokens / 2));
  return few <= 16 ? few : 0;
}

BlockSizes sizes_of(const Config& config, const ModelPart& part, DType type) {
  BlockSizes s;
  s.attention.batch = config.micro_batch;
  s.attention.tokens = config.sequence;
  s.attention.heads = config.model.heads / part.shards;
  s.attention.head_dim = config.model.head_dim();
  s.attention.positions = config.model.positions;
  s.attention.rotary_base = config.model.rotary_base;
  s.attention.rotary_fraction = config.model.rotary_fraction;
  s.hidden = config.model.hidden;
  s.ffn = config.model.ffn / part.shards;
  s.part_count = config.sequence_parallel ? part.shards : 1;
  s.type = type;
  s.recompute = config.recompute;
  return s;
}

TokenLayout layout_of(const Batch& batch) {
  return {batch.positions, batch.cu_seqlens};
}

// In the reverse of their order in memory, which is the order in which blocks finish their backward
// pass.
std::array<const Linear*, 4> matrices_of(const Block& block) {
  return {&block.mlp().projection(), &block.mlp().fc(), &block.attention().projection(),
          &block.attention().qkv()};
}

// Selective recomputation computes GELU's output again from its input.
SavedGelu saved_gelu(const Config& config, DType type, int64_t ffn, const Compute& compute) {
  if (!config.fusions.gelu_derivative || config.recompute == Recompute::selective)
    return SavedGelu::input;
  return faster_saved_gelu(compute, type, ffn, config.model.hidden);
}

}  // namespace

struct Gpt::Activations final : ActivationSet {
  Activations(const BlockSizes& sizes, const ModelPart& part, const BlockActivations& shared,
              const Tensor& final_output, Stream& stream)
      : arena(stream) {
    const auto residual = [&](const char* what) {
      return arena.make(sizes.type, {sizes.part(), sizes.hidden}, what);
    };
    for (int64_t l = 0; l < part.layers; ++l)
      blocks.push_back(plan_block_activations(sizes, shared, &arena));
    if (part.last) {
      final.r = residual("residual stream");
      final.mean = arena.make(wide(sizes.type), {sizes.part()}, "LayerNorm statistics");
      final.rstd = arena.make(wide(sizes.type), {sizes.part()}, "LayerNorm statistics");
      final.y = final_output;
    } else {
      output = residual("output of a stage");
    }
    if (!part.first) input = blocks.front().in.r;
    if (!part.first || !part.last) gradient = residual("gradient between stages");
  }
  size_t bytes() const override { return arena.bytes(); }

  Arena arena;
  std::vector<BlockActivations> blocks;
  NormActivations final;
  // The micro batch that the set holds.
  Batch batch;
  Pass pass;
};

Gpt::Gpt(const Config& config, const ModelPart& part, const ParameterTable& table,
         const Compute& compute, Communicator* tensor)
    : config_(config.model),
      part_(part),
      documents_(config.data.reset_attention_mask),
      type_(table.weights().dtype),
      sizes_(sizes_of(config, part, type_)),
      context_{compute, nullptr, false, config.fusions, Tensor(), true, {}},
      arena_(compute.stream) {
  if (config_.positions == Positions::learned && config.sequence > config_.max_positions) {
    throw std::invalid_argument("the sequence is longer than the model has positions");
  }
  if (part.shards > 1) context_.tensor.group = tensor;
  context_.tensor.sequence = sizes_.part_count > 1;
  // Each process has the column sums of its own tokens only.
  if (context_.tensor.sequence) context_.fusions.qkv_bias = false;
  const int update_sms = sms_for_updates(config, type_, compute.stream);
  // The processes' exchanges would wait for a side stream's GEMMs.
  context_.overlap_weight_gradients = config.fusions.overlap && part.shards == 1 &&
                                      size_of(type_) == 4 && !float64_gemms_serve(compute);
  side_ = SideStream::make(compute.stream, context_.overlap_weight_gradients || update_sms > 0);
  context_.side = side_.get();
  plan_scratch();
  bind(table, saved_gelu(config, type_, sizes_.ffn, compute));
  // A CPU updates with all its cores, at the same places.
  const bool updates = part.first && part.last && config.fusions.deferred_update;
  if (updates && (update_sms > 0 || !compute.stream.device().is_cuda()))
    bind_update(table, update_sms);
}

void Gpt::bind(const ParameterTable& table, SavedGelu form) {
  const int64_t columns = config_.padded_vocabulary / part_.shards;
  const int64_t first_column = columns * part_.shard;
  const VocabularyPart rows{first_column, config_.padded_vocabulary};
  const bool tied = config_.tied_embeddings;
  const ParamGrad token =
      part_.first || (part_.last && tied) ? table.get("wte.weight") : ParamGrad();
  if (part_.first) {
    embedding_ = Embedding(
        token, config_.positions == Positions::learned ? table.get("wpe.weight") : ParamGrad(),
        part_.shards > 1 ? rows : VocabularyPart());
  }
  for (int64_t l = 0; l < part_.layers; ++l) {
    const int64_t layer = part_.first_layer + l;
    blocks_.emplace_back(table, "h." + std::to_string(layer), sizes_, config_.layernorm_epsilon,
                         form, layer, projection_sums_.rows(l, 1).view({config_.hidden}));
  }
  if (part_.last) {
    final_norm_ = ResidualNorm(table, "ln_f", config_.layernorm_epsilon);
    head_ =
        LmHead(tied ? token : table.get("lm_head.weight"),
               {first_column, std::clamp<int64_t>(config_.vocabulary - first_column, 0, columns)});
  }
  bind_vectors(table);
}

// The gradients of this part's biases and norms, as few ranges: other parts of the model may lie in
// the same table.
void Gpt::bind_vectors(const ParameterTable& table) {
  const auto mine = [this](const std::string& name) {
    if (name.rfind("h.", 0) != 0) return part_.last;  // the last norm
    const int64_t layer = std::stoll(name.substr(2));
    return layer >= part_.first_layer && layer < part_.first_layer + part_.layers;
  };
  int64_t first = 0, last = 0;
  const auto end_range = [&] {
    if (first < last) vector_gradients_.push_back(table.gradients({first, last}));
  };
  for (size_t i = 0; i < table.all().size(); ++i) {
    const Parameter& p = table.all()[i];
    if (p.group == ParameterGroup::decayed || !mine(p.name)) continue;
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
void Gpt::bind_update(const ParameterTable& table, int sms) {
  std::vector<int64_t> pieces;
  for (int64_t l = 1; l < config_.layers; ++l)
    pieces.push_back(table.find("h." + std::to_string(l) + ".attn.c_proj.weight").offset);
  pieces.push_back(config_.tied_embeddings ? table.decayed_elements()
                                           : table.find("lm_head.weight").offset);
  pieces.push_back(table.decayed_elements());
  update_ = std::make_unique<DeferredUpdate>(std::move(pieces), sms);
}

void Gpt::plan_scratch() {
  const AttentionGeometry& g = sizes_.attention;
  const int64_t m = sizes_.tokens(), part = sizes_.part(), c = config_.hidden;
  const int64_t v = config_.padded_vocabulary / part_.shards, width = g.width();
  const auto make = [&](DType type, std::initializer_list<int64_t> shape, const char* what) {
    return arena_.make(type, shape, what);
  };
  Stream& stream = context_.compute.stream;
  shared_ = plan_shared_activations(sizes_, &arena_);
  flow_.residual = make(type_, {part, c}, "gradient of the residual stream");
  flow_.normed = make(type_, {part, c}, "gradient of a branch");
  if (config_.hidden_dropout > 0) flow_.branch = make(type_, {part, c}, "gradient under dropout");
  if (context_.tensor.sequence) {
    context_.tensor.gathered = make(type_, {m, c}, "all tokens of a part");
    context_.tensor.second = make(type_, {m, c}, "all tokens of a part");
    context_.tensor.partial = make(type_, {m, c}, "partial sums");
  }
  const int64_t rows =
      part_.last ? LmHead::rows_at_once(m, config_, v, type_, stream.device().is_cuda()) : 0;
  const Tensor both = make(type_, {std::max(rows * v, 3 * m * width)}, "logits");
  head_scratch_.logits = both.view({rows, v});
  qkv_grad_ = both.view({g.batch, g.tokens, 3, g.heads, g.head_dim});
  if (part_.last) {
    head_scratch_.losses = make(wide(type_), {m}, "losses");
    head_scratch_.scales = make(wide(type_), {rows}, "scales of the loss");
  }
  if (part_.last && part_.shards > 1) {
    head_scratch_.sums = make(wide(type_), {3, rows}, "sums of the loss");
    head_scratch_.all_sums = make(wide(type_), {part_.shards, 3, rows}, "sums of the loss");
  }
  projection_sums_ = make(wide(type_), {part_.layers, c}, "sums of gradients");
  Dropout dropout;
  dropout.attention = config_.attention_dropout;
  const size_t bytes =
      std::max({attention_workspace(context_.compute, g.shape(dropout, documents_), type_),
                layernorm_workspace(stream, part, c), embedding_workspace(stream, m, v)});
  context_.workspace = make(DType::u8, {static_cast<int64_t>(bytes)}, "workspace");
}

std::unique_ptr<ActivationSet> Gpt::make_activations() {
  return std::make_unique<Activations>(sizes_, part_, shared_, flow_.residual,
                                       context_.compute.stream);
}

void Gpt::check(const Batch& batch) const {
  const int64_t b = sizes_.attention.batch, t = sizes_.attention.tokens;
  const auto fits = [&](const Tensor& x) {
    return x.dtype == DType::i32 && x.rank == 2 && x.dim(0) == b && x.dim(1) == t;
  };
  if (!fits(batch.ids) || !fits(batch.labels[0]) ||
      (batch.positions.defined() && !fits(batch.positions))) {
    throw std::invalid_argument("the micro batch is not int32[" + std::to_string(b) + "," +
                                std::to_string(t) + "], for which the model was planned");
  }
  if (batch.cu_seqlens.defined() && !documents_)
    throw std::invalid_argument("the model was not planned for documents within a sequence");
  if (batch.token_types.defined() || batch.labels[1].defined())
    throw std::invalid_argument("GPT has no token types and one head");
}

Dropout Gpt::dropout_of(const Pass& pass) const {
  if (!pass.dropout.state && pass.dropout.value == 0) return {};
  const auto shard = static_cast<uint64_t>(part_.shard);
  return {config_.hidden_dropout, config_.attention_dropout, pass.dropout, shard,
          context_.tensor.sequence ? shard : 0};
}

LossFactor Gpt::loss_factor(const Batch& batch, const Pass& pass) const {
  if (pass.factor_in_state) return LossFactor(pass.state);
  const int64_t counted = batch.counted < 0 ? sizes_.tokens() : batch.counted;
  return counted > 0 ? pass.weight / static_cast<double>(counted) : 0.0;
}

void Gpt::forward(const Batch& batch, const Pass& pass, ActivationSet& set) {
  check(batch);
  auto& a = static_cast<Activations&>(set);
  a.batch = batch;
  a.pass = pass;
  run_blocks(a, dropout_of(pass), batch.first && update_ && update_->active());
}

void Gpt::evaluate(const Batch& batch, const Pass& pass, ActivationSet& set) {
  check(batch);
  auto& a = static_cast<Activations&>(set);
  a.batch = batch;
  run_blocks(a, Dropout(), false);
  if (!part_.last) return;
  head_.evaluate(context_, a.final.y, batch.labels[0].view({sizes_.tokens()}),
                 loss_factor(batch, pass), head_scratch_, pass.state);
}

void Gpt::run_blocks(Activations& a, const Dropout& dropout, bool updates) {
  const DeferredUpdate* update = updates ? update_.get() : nullptr;
  if (part_.first)
    embedding_.forward(context_, a.batch.ids, a.batch.positions, dropout, a.blocks.front().in.r);
  blocks_.front().in_norm().norm(context_, a.blocks.front().in);
  for (size_t l = 0; l < blocks_.size(); ++l) {
    const Block& block = blocks_[l];
    if (a.batch.first) weights_are_needed(block);
    block.forward(&context_, layout_of(a.batch), dropout, update, flow_.normed, a.blocks[l]);
    if (l + 1 == blocks_.size()) break;
    blocks_[l + 1].in_norm().forward(context_, block.branch(a.blocks[l]), a.blocks[l].mid.r,
                                     dropout, flow_.normed, a.blocks[l + 1].in);
  }
  end_blocks(a, dropout);
  if (update) update->finish(&context_);
  latest_ = &a;
}

// The last addition.
void Gpt::end_blocks(Activations& a, const Dropout& dropout) {
  const BlockActivations& top = a.blocks.back();
  const Branch branch = blocks_.back().branch(top);
  if (part_.last) {
    final_norm_.forward(context_, branch, top.mid.r, dropout, flow_.normed, a.final);
  } else {
    ResidualNorm::add(context_, branch, top.mid.r, dropout, flow_.normed, a.output);
  }
}

void Gpt::weights_are_needed(const Block& block) const {
  const auto matrices = matrices_of(block);
  for (auto w = matrices.rbegin(); w != matrices.rend(); ++w) weight_is_needed((*w)->weight);
}

// A step's first micro batch finds the last step's gradients. GEMMs overwrite the matrices'
// gradients; those that are summed otherwise start at zero.
void Gpt::start_gradients(bool first) {
  Stream& stream = context_.compute.stream;
  const auto clear = [&](const Tensor& t) { stream.fill_zero(t.data, t.bytes()); };
  context_.accumulate = !first;
  if (context_.fusions.qkv_bias) clear(projection_sums_);
  if (!first) return;
  for (const Tensor& t : vector_gradients_) clear(t);
  if (!part_.first) return;
  if (embedding_.position().gradient.defined()) clear(embedding_.position().gradient);
  // A tied head's GEMM overwrites it.
  if (!config_.tied_embeddings || !part_.last) clear(embedding_.token().gradient);
}

void Gpt::backward(ActivationSet& set) {
  auto& a = static_cast<Activations&>(set);
  const Dropout dropout = dropout_of(a.pass);
  start_gradients(a.batch.first);
  BackwardFlow flow = flow_;
  if (a.gradient.defined()) flow.residual = a.gradient;
  if (part_.last) {
    backward_head(a, dropout, flow);
  } else {
    ResidualNorm::backward_add(context_, blocks_.back().branch(a.blocks.back()), dropout, flow);
  }
  backward_blocks(a, dropout, flow);
  if (part_.first)
    embedding_.backward(context_, a.batch.ids, a.batch.positions, dropout, flow.residual);
  side_->wait();
  latest_ = nullptr;
}

void Gpt::backward_head(Activations& a, const Dropout& dropout, const BackwardFlow& flow) {
  if (latest_ != &a) final_norm_.norm(context_, a.final);
  head_.forward_backward(context_, a.final.y, a.batch.labels[0].view({sizes_.tokens()}),
                         loss_factor(a.batch, a.pass), head_scratch_, a.pass.state, flow.normed);
  const Branch top = blocks_.back().branch(a.blocks.back());
  final_norm_.backward(context_, a.final, &top, dropout, true, flow);
}

void Gpt::backward_blocks(Activations& a, const Dropout& dropout, const BackwardFlow& flow) {
  for (size_t l = blocks_.size(); l-- > 0;) {
    const Block& block = blocks_[l];
    const bool still_there = latest_ == &a && l + 1 == blocks_.size();
    if (sizes_.recompute != Recompute::none) side_->wait();  // blocks share what the GEMMs read
    if (!still_there)
      block.recompute(&context_, layout_of(a.batch), dropout, flow.normed, a.blocks[l]);
    const Branch below = l > 0 ? blocks_[l - 1].branch(a.blocks[l - 1]) : Branch();
    block.backward(context_, layout_of(a.batch), dropout, a.blocks[l], l > 0 ? &below : nullptr,
                   qkv_grad_, flow);
    if (!reports_gradients()) continue;
    side_->wait();
    for (const Linear* w : matrices_of(block)) gradient_is_final(w->weight);
  }
}

std::vector<int> Gpt::reported_parameters() const {
  std::vector<int> ids;
  for (auto block = blocks_.rbegin(); block != blocks_.rend(); ++block)
    for (const Linear* w : matrices_of(*block)) ids.push_back(w->weight.id);
  return ids;
}

std::unique_ptr<Stage> make_gpt(const Config& config, const ModelPart& part,
                                const ParameterTable& table, const Compute& compute,
                                Communicator* tensor) {
  return std::make_unique<Gpt>(config, part, table, compute, tensor);
}

std::unique_ptr<Stage> make_gpt(const Config& config, const ParameterTable& table,
                                const Compute& compute) {
  return make_gpt(config, whole_model(config.model), table, compute, nullptr);
}

}  // namespace tally::train
