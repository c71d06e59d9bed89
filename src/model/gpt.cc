#include "src/model/gpt.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "src/ops/embedding/embedding.h"
#include "src/ops/norm/norm.h"
#include "src/device/philox.h"

namespace tally::train {
namespace {

// Logits held at once: bytes on a GPU; on a CPU, in elements, what stays near the caches.
constexpr int64_t logits_on_gpu = int64_t{1} << 32;
constexpr int64_t logits_on_cpu = int64_t{1} << 23;

// A power of two of tokens, so that every piece but the last has a size that products like. On a
// GPU no more than half of them, and a quarter where the head is a small part of the model's work:
// larger pieces make the head faster, and memory counts.
int64_t rows_at_once(int64_t tokens, const ModelConfig& model, DType type, bool gpu) {
  const int64_t vocabulary = model.padded_vocabulary;
  const int64_t pieces =
      12 * vocabulary > model.layers * (4 * model.hidden + 2 * model.ffn) ? 2 : 4;
  const int64_t elements =
      gpu ? logits_on_gpu / static_cast<int64_t>(size_of(type)) : logits_on_cpu;
  const int64_t limit = std::max<int64_t>(1, elements / vocabulary);
  int64_t rows = 1;
  while (rows * 2 <= limit && (!gpu || rows * 2 * pieces <= tokens)) rows *= 2;
  return std::min(rows, tokens);
}

// SMs for the updates beside the forward pass: as many as move their bytes in its time.
// A parameter moves 30 bytes while the products do 2 operations for it and each token; an H200 does
// those at 650 TFLOP/s and moves 75 GB/s through one SM. A pair at a time, because the
// products' kernels run on pairs. 0: no updates there, because they would take too many, or since
// products of 32 bits do not leave any.
int sms_for_updates(const Config& config, DType type, const Stream& stream) {
  constexpr double sm_tokens = 131072;
  if (!config.fusions.deferred_update || !stream.device().is_cuda() || size_of(type) != 2) return 0;
  const double tokens = static_cast<double>(config.micro_batch * config.sequence);
  const int few = 2 * static_cast<int>(std::ceil(sm_tokens / tokens / 2));
  return few <= 16 ? few : 0;
}

}  // namespace

DropoutSeed Gpt::Dropout::at(Site site, size_t layer) const {
  const uint64_t number = static_cast<uint64_t>(site) + 3 * static_cast<uint64_t>(layer);
  return seed.state ? DropoutSeed(seed.state, number) : DropoutSeed(site_seed(seed.value, number));
}

Gpt::Gpt(const Config& config, ParameterTable& table, const Compute& compute)
    : config_(config.model),
      batch_(config.micro_batch),
      tokens_(config.sequence),
      recompute_(config.recompute),
      fusions_(config.fusions),
      type_(table.weights().dtype),
      compute_(compute),
      stream_(compute.stream),
      arena_(stream_),
      update_sms_(sms_for_updates(config, type_, stream_)),
      weights_beside_(config.fusions.overlap && size_of(type_) == 4 &&
                      !float64_gemms_serve(compute)),
      side_(SideStream::make(stream_, weights_beside_ || update_sms_ > 0)) {
  if (config_.positions == Positions::learned && tokens_ > config_.max_positions) {
    throw std::invalid_argument("the sequence is longer than the model has positions");
  }
  // Selective recomputation makes GELU's output again from its input.
  if (fusions_.gelu_derivative && recompute_ != Recompute::selective) {
    saved_gelu_ = faster_saved_gelu(compute_, type_, config_.ffn, config_.hidden);
  }
  bind_parameters(table);
  plan();
}

void Gpt::bind_parameters(const ParameterTable& table) {
  gradients_ = table.gradients();
  decayed_ = table.decayed_elements();
  const auto bind = [&](const std::string& name) {
    return ParamGrad{table.weight(name), table.gradient(name)};
  };
  token_embedding_ = bind("wte.weight");
  if (config_.positions == Positions::learned) position_embedding_ = bind("wpe.weight");
  head_ = config_.tied_embeddings ? token_embedding_ : bind("lm_head.weight");
  final_weight_ = bind("ln_f.weight");
  final_bias_ = bind("ln_f.bias");
  for (int64_t l = 0; l < config_.layers; ++l) {
    const std::string h = "h." + std::to_string(l) + ".";
    BlockParameters p;
    p.ln1_weight = bind(h + "ln_1.weight");
    p.ln1_bias = bind(h + "ln_1.bias");
    p.qkv_weight = bind(h + "attn.c_attn.weight");
    p.qkv_bias = bind(h + "attn.c_attn.bias");
    p.proj_weight = bind(h + "attn.c_proj.weight");
    p.proj_bias = bind(h + "attn.c_proj.bias");
    p.ln2_weight = bind(h + "ln_2.weight");
    p.ln2_bias = bind(h + "ln_2.bias");
    p.fc_weight = bind(h + "mlp.c_fc.weight");
    p.fc_bias = bind(h + "mlp.c_fc.bias");
    p.out_weight = bind(h + "mlp.c_proj.weight");
    p.out_bias = bind(h + "mlp.c_proj.bias");
    parameters_.push_back(p);
    late_.push_back(l == 0 ? 0 : table.find(h + "attn.c_proj.weight").offset);
  }
  late_.erase(late_.begin());
  // Beside the last block: what lies behind the blocks, a head of its own.
  late_.push_back(config_.tied_embeddings ? decayed_ : table.find("lm_head.weight").offset);
  late_.push_back(decayed_);
}

BlockActivations Gpt::plan_block(const BlockActivations* shared) {
  const int64_t m = batch_ * tokens_, c = config_.hidden, f = config_.ffn;
  const DType wide = type_ == DType::f64 ? DType::f64 : DType::f32;
  const auto make = [&](std::initializer_list<int64_t> shape, const char* what) {
    return arena_.make(type_, shape, what);
  };
  const auto number_per_row = [&]() { return arena_.make(wide, {m}, "LayerNorm statistics"); };
  const bool full = shared && recompute_ == Recompute::full;
  const bool selective = shared && recompute_ == Recompute::selective;
  BlockActivations a = full || selective ? *shared : BlockActivations();
  a.r_in = make({m, c}, "residual stream");
  if (full) return a;
  a.mean1 = number_per_row();
  a.rstd1 = number_per_row();
  a.qkv = make({batch_, tokens_, 3, config_.heads, config_.head_dim()}, "queries, keys and values");
  a.att = make({m, c}, "attention output");
  a.stats = arena_.make(wide, {batch_, config_.heads, tokens_}, "attention statistics");
  a.r_mid = make({m, c}, "residual stream");
  a.mean2 = number_per_row();
  a.rstd2 = number_per_row();
  a.pre = make({m, f}, "MLP activations");
  if (selective) return a;
  a.ln1 = make({m, c}, "LayerNorm output");
  a.ln2 = make({m, c}, "LayerNorm output");
  a.act = make({m, f}, "MLP activations");
  return a;
}

void Gpt::plan() {
  const int64_t m = batch_ * tokens_, c = config_.hidden, v = config_.padded_vocabulary;
  const DType wide = type_ == DType::f64 ? DType::f64 : DType::f32;
  for (int64_t l = 0; l < config_.layers; ++l) {
    blocks_.push_back(plan_block(blocks_.empty() ? nullptr : &blocks_.front()));
  }
  r_final_ = arena_.make(type_, {m, c}, "residual stream");
  final_mean_ = arena_.make(wide, {m}, "LayerNorm statistics");
  final_rstd_ = arena_.make(wide, {m}, "LayerNorm statistics");
  residual_grad_ = arena_.make(type_, {m, c}, "gradient of the residual stream");
  branch_ = arena_.make(type_, {m, c}, "gradient of a branch");
  if (config_.hidden_dropout > 0) {
    branch_grad_ = arena_.make(type_, {m, c}, "gradient under dropout");
  }
  const int64_t rows = rows_at_once(m, config_, type_, stream_.device().is_cuda());
  const Tensor shared = arena_.make(type_, {std::max(rows * v, 3 * m * c)}, "logits");
  logits_ = shared.view({rows, v});
  qkv_grad_ = shared.view({batch_, tokens_, 3, config_.heads, config_.head_dim()});
  losses_ = arena_.make(wide, {m}, "losses");
  shares_ = arena_.make(wide, {rows}, "shares of the tokens");
  proj_sums_ = arena_.make(wide, {config_.layers, c}, "sums of gradients");
  Dropout dropout;
  dropout.attention = config_.attention_dropout;
  const size_t bytes =
      std::max({attention_workspace(compute_, attention_shape(dropout), type_),
                layernorm_workspace(stream_, m, c), embedding_workspace(stream_, m, v)});
  workspace_ = arena_.make(DType::u8, {static_cast<int64_t>(bytes)}, "workspace");
}

void Gpt::check(const Batch& batch) const {
  const auto fits = [&](const Tensor& t) {
    return t.dtype == DType::i32 && t.rank == 2 && t.dim(0) == batch_ && t.dim(1) == tokens_;
  };
  if (!fits(batch.ids) || !fits(batch.targets)) {
    throw std::invalid_argument("the micro batch is not int32[" + std::to_string(batch_) + "," +
                                std::to_string(tokens_) + "], for which the model was planned");
  }
}

AttentionShape Gpt::attention_shape(const Dropout& dropout) const {
  AttentionShape s;
  s.batch = batch_;
  s.tokens = tokens_;
  s.heads = config_.heads;
  s.head_dim = config_.head_dim();
  s.scale = 1.0 / std::sqrt(static_cast<double>(s.head_dim));
  s.dropout = dropout.attention;
  return s;
}

// All matrices of the blocks from the second block's attention projection on.
Model::DeferredParameters Gpt::deferred_parameters() const {
  const bool on_cpu = !stream_.device().is_cuda() && fusions_.deferred_update;
  if (!on_cpu && update_sms_ == 0) return {};
  return {late_.front(), decayed_};
}

double Gpt::loss_factor(const Batch& batch, double weight) const {
  const int64_t counted = batch.counted < 0 ? batch_ * tokens_ : batch.counted;
  return counted > 0 ? weight / static_cast<double>(counted) : 0;
}

void Gpt::forward_backward(const Batch& batch, double weight, DropoutSeed seed, StepState* state) {
  check(batch);
  Dropout dropout;
  if (seed.state || seed.value != 0) {
    dropout = {config_.hidden_dropout, config_.attention_dropout, seed};
  }
  start_gradients(batch.first);
  forward(batch, dropout, batch.first && deferred_update());
  head(batch, loss_factor(batch, weight), true, state);
  backward(batch, dropout);
}

void Gpt::evaluate(const Batch& batch, double weight, StepState* state) {
  check(batch);
  forward(batch, Dropout(), false);
  head(batch, loss_factor(batch, weight), false, state);
}

std::unique_ptr<Model> make_gpt(const Config& config, ParameterTable& table, const Compute& compute) {
  return std::make_unique<Gpt>(config, table, compute);
}

}  // namespace tally::train
