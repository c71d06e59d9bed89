// BERT and DistilBERT as plain autograd programs over the same parameters: the oracle of the
// explicit model.
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/zeros.h>

#include <string>

#include "src/model/encoder_names.h"
#include "src/reference/autograd_stage.h"

namespace tally::train {
namespace {

class ReferenceEncoder final : public AutogradStage {
 public:
  ReferenceEncoder(const Config& config, const ParameterTable& table, Stream& stream)
      : AutogradStage(config, table, stream), names_(encoder_names(config_)) {}

 private:
  at::Tensor gelu(const at::Tensor& x) const {
    return at::gelu(x, config_.tanh_gelu ? "tanh" : "none");
  }

  at::Tensor embed(const Batch& batch) const {
    at::Tensor x = at::embedding(w(names_.words), indices(batch.ids)) +
                   at::embedding(w(names_.positions), positions_of(batch));
    if (!names_.token_types.empty())
      x = x + at::embedding(w(names_.token_types), indices(batch.token_types));
    return dropout(norm(x, names_.embedding_norm), config_.hidden_dropout, 0);
  }

  // Hidden states [M,C] after the last norm.
  at::Tensor states(const Batch& batch) const {
    const int64_t b = batch.ids.dim(0), t = batch.ids.dim(1);
    const at::Tensor hidden = batch.cu_seqlens.defined() ? apart(batch) : at::Tensor();
    at::Tensor x = embed(batch);
    for (int64_t l = 0; l < config_.layers; ++l) {
      const BlockNames names = names_.block(l);
      const uint64_t site = 3 * static_cast<uint64_t>(l) + 1;
      const at::Tensor qkv =
          linear(x, names.qkv).view({b, t, 3, config_.heads, config_.head_dim()});
      const at::Tensor attended =
          attend(qkv.select(2, 0), qkv.select(2, 1), qkv.select(2, 2), hidden, site);
      x = norm(x + dropout(linear(attended, names.projection), config_.hidden_dropout, site + 1),
               names.mid_norm);
      const at::Tensor mlp = linear(gelu(linear(x, names.fc)), names.mlp_projection);
      x = norm(x + dropout(mlp, config_.hidden_dropout, site + 2), names_.last_norm(l + 1));
    }
    return x.view({b * t, config_.hidden});
  }

  Losses losses_of(const Batch& batch) override {
    const at::Tensor x = states(batch);
    if (config_.task == Task::question_answering) return answers(x, batch);
    if (config_.task == Task::classification)
      return {classes(x, batch, names_.classifier, config_.classifier_dropout, 0)};
    at::Tensor masked = masked_lm(x, batch);
    if (!config_.predicts_next_sentence()) return {masked};
    return {masked, classes(x, batch, names_.next_sentence, 0, 1)};
  }

  at::Tensor masked_lm(const at::Tensor& x, const Batch& batch) const {
    const MaskedLmNames& names = names_.masked_lm;
    const at::Tensor z =
        norm(gelu(linear(x.index_select(0, indices(batch.rows)), names.dense)), names.norm);
    const at::Tensor logits = at::linear(z, w(names_.words), w(names.decoder_bias));
    return cross_entropy(logits.narrow(1, 0, config_.vocabulary), batch.labels[0]);
  }

  at::Tensor classes(const at::Tensor& x, const Batch& batch, const std::string& output, double p,
                     size_t label) const {
    const at::Tensor dense =
        linear(x.index_select(0, indices(batch.firsts)), names_.sequence_dense);
    const at::Tensor h = config_.kind == "bert" ? at::tanh(dense) : at::relu(dense);
    const uint64_t site = 3 * static_cast<uint64_t>(config_.layers) + 4;
    return cross_entropy(linear(dropout(h, p, site), output), batch.labels[label]);
  }

  // Each sequence by itself; half of the first and half of the last token.
  Losses answers(const at::Tensor& x, const Batch& batch) const {
    const at::Tensor logits = linear(x, names_.answers);
    const at::Tensor firsts = indices(batch.firsts), lengths = indices(batch.lengths);
    Losses losses{at::zeros({}, options(type_)), at::zeros({}, options(type_))};
    for (int64_t b = 0; b < batch.firsts.dim(0); ++b) {
      const at::Tensor of_sequence =
          logits.narrow(0, firsts[b].item<int64_t>(), lengths[b].item<int64_t>());
      for (const size_t k : {0UL, 1UL})
        losses[k] =
            losses[k] + cross_entropy(of_sequence.select(1, static_cast<int64_t>(k)).unsqueeze(0),
                                      batch.labels[k].rows(b, 1)) /
                            2;
    }
    return losses;
  }

  const EncoderNames& names_;
};

}  // namespace

std::unique_ptr<Stage> make_reference_encoder(const Config& config, const ParameterTable& table,
                                              const Compute& compute) {
  return std::make_unique<ReferenceEncoder>(config, table, compute.stream);
}

}  // namespace tally::train
