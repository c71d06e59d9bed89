#include "src/model/encoder.h"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "src/nn/lm_head.h"
#include "src/ops/embedding/embedding.h"

namespace tally::train {
namespace {

BlockSizes encoder_sizes(const Config& config, DType type) {
  BlockSizes sizes = block_sizes(config, whole_model(config.model), type);
  sizes.attention.most_documents = 2 * sizes.attention.batch;  // sequences and their padding
  return sizes;
}

}  // namespace

Encoder::Encoder(const Config& config, const ParameterTable& table, Stream& stream)
    : Transformer(config, whole_model(config.model), table, stream, nullptr,
                  encoder_sizes(config, table.weights().dtype), true) {
  if (config.sequence > config_.max_positions)
    throw std::invalid_argument("the sequence is longer than the model has positions");
  // Micro batches differ in their tokens, and in how many of them are masked.
  context_.compute.options.tokens_vary = true;
  const bool gpu = stream.device().is_gpu();
  const int64_t m = sizes_.tokens(), v = config_.padded_vocabulary;
  const bool predicts = config_.task == Task::pretraining;
  const int64_t rows = predicts ? LmHead::rows_at_once(m, config_, v, type_, gpu) : 0;
  const Tensor memory = reserve_scratch(rows * v);
  bind_blocks(table);
  blocks_.front().in_norm().drop_output();
  bind_heads(table);
  reserve_heads(memory.view({rows, v}));
}

void Encoder::bind_heads(const ParameterTable& table) {
  embedding_ = Embedding(table.weight({Role::token_table}), table.weight({Role::position_table}));
  if (config_.token_types > 0) token_types_ = table.weight({Role::type_table});
  switch (config_.task) {
    case Task::language_model:
      throw std::invalid_argument("an encoder is not a language model");
    case Task::pretraining:
      masked_lm_ = MaskedLmHead(table, embedding_.token(),
                                {config_.vocabulary, config_.layernorm_epsilon, config_.block.mlp});
      if (config_.predicts_next_sentence())
        sequence_ = SequenceHead(table, Activation::tanh, Role::next_sentence, 0);
      return;
    case Task::classification:
      sequence_ = SequenceHead(table, config_.pooler ? Activation::tanh : Activation::relu,
                               Role::classifier, *config_.head_dropout());
      return;
    case Task::question_answering:
      span_ = SpanHead(table, config_.head_dropout().value_or(0));
      return;
  }
}

void Encoder::reserve_heads(const Tensor& logits) {
  const AttentionGeometry& g = sizes_.attention;
  if (config_.task == Task::pretraining) masked_lm_.reserve(&arena_, sizes_.tokens(), logits);
  if (config_.task == Task::classification || config_.predicts_next_sentence())
    sequence_.reserve(&arena_, g.batch);
  if (config_.task == Task::question_answering)
    span_.reserve(&arena_, g.batch, g.tokens, sizes_.tokens());
}

void Encoder::check(const Batch& batch) const {
  const auto refuse = [](const std::string& why) { throw std::invalid_argument(why); };
  const int64_t most = sizes_.tokens(), sequences = sizes_.attention.batch;
  const auto alike = [&](const Tensor& x) {
    return x.dtype == DType::i32 && x.rank == 2 && x.dim(0) == batch.ids.dim(0) &&
           x.dim(1) == batch.ids.dim(1);
  };
  if (!alike(batch.ids) || batch.ids.numel() > most || batch.ids.numel() == 0)
    refuse("the micro batch does not have int32 tokens [B,T], at most " + std::to_string(most));
  if (batch.positions.defined() && !alike(batch.positions))
    refuse("the positions are not as the tokens");
  if (!batch.positions.defined() && batch.ids.dim(1) > config_.max_positions)
    refuse("the sequence is longer than the model has positions");
  if (token_types_.value.defined() != batch.token_types.defined() ||
      (batch.token_types.defined() && !alike(batch.token_types)))
    refuse("the micro batch has token types where the model has none, or none where it has");
  if (batch.firsts.numel() > sequences)
    refuse("the micro batch has more sequences than the model was made for");
  check_labels(batch);
}

void Encoder::check_labels(const Batch& batch) const {
  const auto list = [](const Tensor& x, int64_t n) {
    return x.dtype == DType::i32 && x.rank == 1 && x.dim(0) == n;
  };
  const int64_t sequences = batch.firsts.numel();
  const bool second = config_.label_heads() == 2;
  const bool first =
      list(batch.labels[0], config_.task == Task::pretraining ? batch.rows.dim(0) : sequences);
  if (first && (!second || list(batch.labels[1], sequences)) &&
      (config_.task != Task::question_answering || list(batch.lengths, sequences)))
    return;
  throw std::invalid_argument("the micro batch does not have the labels of the task");
}

void Encoder::clear_gradients() {
  Stream& stream = context_.compute.stream;
  const auto clear = [&](const Tensor& t) { stream.fill_zero(t.data, t.bytes()); };
  clear(embedding_.position().gradient);
  if (token_types_.gradient.defined()) clear(token_types_.gradient);
  // The decoder's GEMM overwrites it.
  if (config_.task != Task::pretraining) clear(embedding_.token().gradient);
}

void Encoder::embed(const Activations& a, const Tensor& r) {
  embedding_.forward(context_, a.batch.ids, a.batch.positions, Dropout(), r);
  if (token_types_.value.defined())
    add_embedding(context_.compute, a.batch.token_types, token_types_.value, Out(r));
}

void Encoder::backward_embedding(const Activations& a, const Tensor& dr) {
  embedding_.backward(context_, a.batch.ids, a.batch.positions, Dropout(), dr);
  if (token_types_.value.defined())
    embedding_backward(context_.compute, {a.batch.token_types}, dr, {},
                       {Out(token_types_.gradient)});
}

MaskedTokens Encoder::masked(const Activations& a) const {
  return {a.batch.rows, a.batch.labels[0], loss_factor(a, 0, a.batch.rows.dim(0))};
}

// Classes, or the next sentence.
SequenceLabels Encoder::sequences(const Activations& a) const {
  const Batch& b = a.batch;
  const size_t head = config_.task == Task::pretraining ? 1 : 0;
  return {b.firsts, b.labels[head], loss_factor(a, head, b.firsts.dim(0)), head};
}

SpanLabels Encoder::spans(const Activations& a) const {
  const Batch& b = a.batch;
  SpanLabels labels{b.firsts,
                    b.lengths,
                    b.labels,
                    {loss_factor(a, 0, b.firsts.dim(0)), loss_factor(a, 1, b.firsts.dim(0))}};
  for (LossFactor& factor : labels.factor) factor.value /= 2;
  return labels;
}

void Encoder::evaluate_head(const Activations& a) {
  const Tensor& y = a.final.y;
  StepState* state = a.pass.state;
  if (config_.task == Task::question_answering) return span_.evaluate(context_, y, spans(a), state);
  if (config_.task == Task::pretraining) masked_lm_.evaluate(context_, y, masked(a), state);
  if (config_.task == Task::classification || config_.predicts_next_sentence())
    sequence_.evaluate(context_, y, sequences(a), state);
}

void Encoder::backward_head(const Activations& a, const Tensor& dy) {
  const Tensor& y = a.final.y;
  StepState* state = a.pass.state;
  const Dropout& dropout = context_.dropout;
  const bool drops = dropout.seed.state || dropout.seed.value != 0;
  const DropoutSeed seed = drops ? dropout.at(DropoutSite::head, config_.layers) : DropoutSeed();
  if (config_.task == Task::question_answering)
    return span_.forward_backward(context_, y, spans(a), seed, state, dy);
  // The other heads add to the rows that they read.
  context_.compute.stream.fill_zero(dy.data, dy.bytes());
  if (config_.task == Task::pretraining)
    masked_lm_.forward_backward(context_, y, masked(a), state, dy);
  if (config_.task != Task::classification && !config_.predicts_next_sentence()) return;
  sequence_.forward_backward(context_, y, sequences(a), seed, state, dy);
}

Tensor Encoder::logits() const {
  if (config_.task == Task::question_answering) return span_.logits();
  return config_.task == Task::classification ? sequence_.logits() : Tensor();
}

std::unique_ptr<Stage> make_encoder(const Config& config, const ParameterTable& table,
                                    Stream& stream) {
  return std::make_unique<Encoder>(config, table, stream);
}

}  // namespace tally::train
