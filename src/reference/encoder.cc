// BERT and DistilBERT as plain autograd programs over the same parameters: the oracle of the
// explicit model.
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tanh.h>

#include <limits>
#include <vector>

#include "src/reference/autograd_stage.h"

namespace tally::train {
namespace {

class ReferenceEncoder final : public AutogradStage {
 public:
  ReferenceEncoder(const Config& config, const ParameterTable& table, Stream& stream)
      : AutogradStage(config, table, stream), sequence_(config.sequence) {}

  Tensor logits() const override {
    if (!logits_.defined()) return {};
    Tensor t(logits_.data_ptr(), type_ == at::kDouble ? DType::f64 : DType::f32, {});
    for (const int64_t n : logits_.sizes()) t.shape[static_cast<size_t>(t.rank++)] = n;
    return t;
  }

 private:
  uint64_t head_site() const { return 3 * static_cast<uint64_t>(config_.layers) + 4; }

  at::Tensor embed(const Batch& batch) const {
    at::Tensor x = at::embedding(w({Role::token_table}), indices(batch.ids)) +
                   at::embedding(w({Role::position_table}), positions_of(batch));
    if (config_.token_types > 0)
      x = x + at::embedding(w({Role::type_table}), indices(batch.token_types));
    return dropout(norm(x, {Role::in_norm, 0}), config_.hidden_dropout, 0);
  }

  // Hidden states [M,C] after the last norm.
  at::Tensor states(const Batch& batch) const {
    const int64_t b = batch.ids.dim(0), t = batch.ids.dim(1);
    const at::Tensor hidden = batch.cu_seqlens.defined() ? apart(batch) : at::Tensor();
    at::Tensor x = embed(batch);
    for (int64_t l = 0; l < config_.layers; ++l) {
      const uint64_t site = 3 * static_cast<uint64_t>(l) + 1;
      const at::Tensor qkv =
          linear(x, {Role::qkv, l}).view({b, t, 3, config_.heads, config_.head_dim()});
      const at::Tensor attended =
          attend(qkv.select(2, 0), qkv.select(2, 1), qkv.select(2, 2), hidden, site);
      x = norm(
          x + dropout(linear(attended, {Role::projection, l}), config_.hidden_dropout, site + 1),
          {Role::mid_norm, l});
      const at::Tensor mlp =
          linear(activation(linear(x, {Role::fc, l})), {Role::mlp_projection, l});
      x = norm(x + dropout(mlp, config_.hidden_dropout, site + 2), {Role::in_norm, l + 1});
    }
    return x.view({b * t, config_.hidden});
  }

  Losses losses_of(const Batch& batch) override {
    const at::Tensor x = states(batch);
    if (config_.task == Task::question_answering) return answers(x, batch);
    if (config_.task == Task::classification)
      return {classes(x, batch, Role::classifier, *config_.head_dropout(), 0)};
    at::Tensor masked = masked_lm(x, batch);
    if (!config_.predicts_next_sentence()) return {masked};
    return {masked, classes(x, batch, Role::next_sentence, 0, 1)};
  }

  at::Tensor masked_lm(const at::Tensor& x, const Batch& batch) const {
    const at::Tensor rows = x.index_select(0, indices(batch.rows));
    const at::Tensor z = norm(activation(linear(rows, {Role::masked_dense})), {Role::masked_norm});
    const at::Tensor logits = at::linear(z, w({Role::token_table}), bias({Role::masked_decoder}));
    return cross_entropy(logits.narrow(1, 0, config_.vocabulary), batch.labels[0]);
  }

  // Leaves logits(), as answers() does.
  at::Tensor classes(const at::Tensor& x, const Batch& batch, Role output, double p, size_t label) {
    const at::Tensor dense =
        linear(x.index_select(0, indices(batch.firsts)), {Role::sequence_dense});
    const at::Tensor h = config_.pooler ? at::tanh(dense) : at::relu(dense);
    const at::Tensor logits = linear(dropout(h, p, head_site()), {output});
    if (config_.task == Task::classification) logits_ = logits.detach();
    return cross_entropy(logits, batch.labels[label]);
  }

  // Each sequence by itself; half of the first and half of the last token.
  Losses answers(const at::Tensor& x, const Batch& batch) {
    const at::Tensor columns =
        linear(dropout(x, config_.head_dropout().value_or(0), head_site()), {Role::answers});
    const at::Tensor firsts = indices(batch.firsts), lengths = indices(batch.lengths);
    std::vector<at::Tensor> sequences;
    for (int64_t b = 0; b < batch.firsts.dim(0); ++b) {
      const auto length = lengths[b].item<int64_t>();
      sequences.push_back(
          at::constant_pad_nd(columns.narrow(0, firsts[b].item<int64_t>(), length).t(),
                              {0, sequence_ - length}, -std::numeric_limits<double>::infinity()));
    }
    const at::Tensor logits = at::stack(sequences, 1);
    logits_ = logits.detach();
    return {cross_entropy(logits[0], batch.labels[0]) / 2,
            cross_entropy(logits[1], batch.labels[1]) / 2};
  }

  const int64_t sequence_;  // tokens that the longest sequence may have
  at::Tensor logits_;       // logits(), of the last batch
};

}  // namespace

std::unique_ptr<Stage> make_reference_encoder(const Config& config, const ParameterTable& table,
                                              Stream& stream) {
  return std::make_unique<ReferenceEncoder>(config, table, stream);
}

}  // namespace tally::train
