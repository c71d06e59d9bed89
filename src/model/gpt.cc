#include "src/model/gpt.h"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "src/ops/embedding/embedding.h"

namespace tally::train {

Gpt::Gpt(const Config& config, const ModelPart& part, const ParameterTable& table, Stream& stream,
         Communicator* tensor)
    : Transformer(config, part, table, stream, tensor,
                  block_sizes(config, part, table.weights().dtype),
                  config.data.reset_attention_mask) {
  if (config_.positions == Positions::learned && config.sequence > config_.max_positions) {
    throw std::invalid_argument("the sequence is longer than the model has positions");
  }
  reserve();
  bind(table);
}

void Gpt::reserve() {
  const int64_t m = sizes_.tokens(), v = config_.padded_vocabulary / part_.shards;
  const bool gpu = context_.compute.stream.device().is_gpu();
  const int64_t rows = part_.last ? LmHead::rows_at_once(m, config_, v, type_, gpu) : 0;
  const Tensor memory = reserve_scratch(rows * v);
  const DType wide = wide_type(type_);
  head_scratch_.logits = memory.view({rows, v});
  if (!part_.last) return;
  head_scratch_.losses = arena_.make(wide, {m}, "losses");
  head_scratch_.scales = arena_.make(wide, {rows}, "scales of the loss");
  if (part_.shards == 1) return;
  head_scratch_.sums = arena_.make(wide, {3, rows}, "sums of the loss");
  head_scratch_.all_sums = arena_.make(wide, {part_.shards, 3, rows}, "sums of the loss");
}

void Gpt::bind(const ParameterTable& table) {
  const int64_t columns = config_.padded_vocabulary / part_.shards;
  const int64_t first_column = columns * part_.shard;
  const VocabularyPart rows{first_column, config_.padded_vocabulary};
  const bool tied = config_.tied_embeddings;
  const ParamGrad token =
      part_.first || (part_.last && tied) ? table.weight({Role::token_table}) : ParamGrad();
  if (part_.first) {
    embedding_ =
        Embedding(token,
                  config_.positions == Positions::learned ? table.weight({Role::position_table})
                                                          : ParamGrad(),
                  part_.shards > 1 ? rows : VocabularyPart());
  }
  bind_blocks(table);
  if (!part_.last) return;
  head_ =
      LmHead(tied ? token : table.weight({Role::lm_head}),
             {first_column, std::clamp<int64_t>(config_.vocabulary - first_column, 0, columns)});
}

void Gpt::check(const Batch& batch) const {
  const int64_t b = sizes_.attention.batch, t = sizes_.attention.tokens;
  const auto fits = [&](const Tensor& x) {
    return x.dtype == DType::i32 && x.rank == 2 && x.dim(0) == b && x.dim(1) == t;
  };
  if (!fits(batch.ids) || !fits(batch.labels[0]) ||
      (batch.positions.defined() && !fits(batch.positions))) {
    throw std::invalid_argument("the micro batch is not int32[" + std::to_string(b) + "," +
                                std::to_string(t) + "], for which the model was made");
  }
  if (batch.cu_seqlens.defined() && !documents_)
    throw std::invalid_argument("the model was not made for documents within a sequence");
  if (batch.token_types.defined() || batch.labels[1].defined())
    throw std::invalid_argument("GPT has no token types and one head");
}

void Gpt::clear_gradients() {
  Stream& stream = context_.compute.stream;
  const auto clear = [&](const Tensor& t) { stream.fill_zero(t.data, t.bytes()); };
  if (!part_.first) return;
  if (embedding_.position().gradient.defined()) clear(embedding_.position().gradient);
  // A tied head's GEMM overwrites it.
  if (!config_.tied_embeddings || !part_.last) clear(embedding_.token().gradient);
}

void Gpt::embed(const Activations& a, const Tensor& r) {
  embedding_.forward(context_, a.batch.ids, a.batch.positions, context_.dropout, r);
}

void Gpt::backward_embedding(const Activations& a, const Tensor& dr) {
  embedding_.backward(context_, a.batch.ids, a.batch.positions, context_.dropout, dr);
}

LossFactor Gpt::factor(const Activations& a) const {
  return loss_factor(a, 0, sizes_.tokens());
}

Tensor Gpt::labels(const Activations& a) const {
  return a.batch.labels[0].view({sizes_.tokens()});
}

void Gpt::evaluate_head(const Activations& a) {
  head_.evaluate(context_, a.final.y, labels(a), factor(a), head_scratch_, a.pass.state,
                 a.pass.correct);
}

void Gpt::backward_head(const Activations& a, const Tensor& dy) {
  head_.forward_backward(context_, a.final.y, labels(a), factor(a), head_scratch_, a.pass.state,
                         dy);
}

std::unique_ptr<Stage> make_gpt(const Config& config, const ModelPart& part,
                                const ParameterTable& table, Stream& stream, Communicator* tensor) {
  return std::make_unique<Gpt>(config, part, table, stream, tensor);
}

std::unique_ptr<Stage> make_gpt(const Config& config, const ParameterTable& table, Stream& stream) {
  return make_gpt(config, whole_model(config.model), table, stream, nullptr);
}

}  // namespace tally::train
