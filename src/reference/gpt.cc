// GPT and Llama as a plain autograd program over the same parameters: the oracle of the explicit
// model.
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/cos.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/repeat_interleave.h>
#include <ATen/ops/sin.h>
#include <ATen/ops/triu.h>

#include "src/reference/autograd_stage.h"

namespace tally::train {
namespace {

class ReferenceGpt final : public AutogradStage {
 public:
  using AutogradStage::AutogradStage;

 private:
  Losses losses_of(const Batch& batch) override {
    const at::Tensor logits = logits_of(batch);
    return {
        cross_entropy(logits.view({-1, config_.padded_vocabulary}).narrow(1, 0, config_.vocabulary),
                      batch.labels[0])};
  }

  // x[B,T,H,D]; angles in float64.
  at::Tensor rotate(const at::Tensor& x, const at::Tensor& positions) const {
    const int64_t half =
        static_cast<int64_t>(static_cast<double>(x.size(3)) * config_.rotary_fraction) / 2;
    const RotaryAngles turns{config_.rotary_base, config_.rotary_scaling};
    const at::Tensor rates = at::empty(half, options(at::kDouble).device(at::kCPU));
    for (int64_t i = 0; i < half; ++i)
      rates.data_ptr<double>()[i] = rotary_frequency(turns, i, half);
    const at::Tensor angles = positions.to(at::kDouble)
                                  .unsqueeze(2)
                                  .mul(rates.to(x.device()))
                                  .unsqueeze(2);  // [B or 1, T, 1, half]
    const at::Tensor c = at::cos(angles).to(type_), s = at::sin(angles).to(type_);
    const at::Tensor a = x.narrow(3, 0, half), b = x.narrow(3, half, half);
    const at::Tensor rest = x.narrow(3, 2 * half, x.size(3) - 2 * half);
    return at::cat({a * c - b * s, b * c + a * s, rest}, 3);
  }

  // [T,T] or, with documents, [B,1,T,T]: true where a row's token does not see a column's.
  at::Tensor hidden(const Batch& batch) const {
    const int64_t t = batch.ids.dim(1);
    // Not const: it is moved from where it is returned.
    at::Tensor future = at::ones({t, t}, options(at::kBool)).triu(1);
    if (!batch.cu_seqlens.defined()) return future;
    return future.logical_or(apart(batch));
  }

  at::Tensor attention(const at::Tensor& x, const Batch& batch, int64_t layer,
                       uint64_t site) const {
    const int64_t b = x.size(0), t = x.size(1), h = config_.heads, g = config_.kv_heads();
    const int64_t d = config_.head_dim();
    const at::Tensor qkv = linear(x, {Role::qkv, layer}).view({b, t, h + 2 * g, d});
    // Each head of K and V serves the h / g neighbouring heads of Q.
    const auto repeated = [&](const at::Tensor& heads) {
      return g == h ? heads : at::repeat_interleave(heads, h / g, 2);
    };
    at::Tensor q = qkv.narrow(2, 0, h), k = repeated(qkv.narrow(2, h, g));
    const at::Tensor v = repeated(qkv.narrow(2, h + g, g));
    if (config_.block.qk_norm) {
      q = norm(q, {Role::q_norm, layer});
      k = norm(k, {Role::k_norm, layer});
    }
    if (config_.positions == Positions::rotary) {
      q = rotate(q, positions_of(batch));
      k = rotate(k, positions_of(batch));
    }
    return linear(attend(q, k, v, hidden(batch), site), {Role::projection, layer});
  }

  at::Tensor logits_of(const Batch& batch) const {
    at::Tensor x = at::embedding(w({Role::token_table}), indices(batch.ids));
    if (config_.positions == Positions::learned) {
      x = x + at::embedding(w({Role::position_table}), positions_of(batch));
    }
    x = dropout(x, config_.hidden_dropout, 0);
    for (int64_t l = 0; l < config_.layers; ++l) {
      const uint64_t site = 3 * static_cast<uint64_t>(l) + 1;
      x = x + dropout(attention(norm(x, {Role::in_norm, l}), batch, l, site),
                      config_.hidden_dropout, site + 1);
      const at::Tensor act = activation(linear(norm(x, {Role::mid_norm, l}), {Role::fc, l}));
      x = x + dropout(linear(act, {Role::mlp_projection, l}), config_.hidden_dropout, site + 2);
    }
    const Role head = config_.tied_embeddings ? Role::token_table : Role::lm_head;
    return at::matmul(norm(x, {Role::in_norm, config_.layers}), w({head}).t());
  }
};

}  // namespace

std::unique_ptr<Stage> make_reference_gpt(const Config& config, const ParameterTable& table,
                                          Stream& stream) {
  return std::make_unique<ReferenceGpt>(config, table, stream);
}

std::unique_ptr<Stage> make_reference(const Config& config, const ParameterTable& table,
                                      Stream& stream) {
  return config.model.language_model() ? make_reference_gpt(config, table, stream)
                                       : make_reference_encoder(config, table, stream);
}

}  // namespace tally::train
