// The explicit BERT (Devlin et al., arXiv:1810.04805) and DistilBERT (Sanh et al.,
// arXiv:1910.01108):
//   r_0 = words + positions + token types;  y_0 = dropout(ln(r_0));  post-norm blocks;
//   loss = that of the task's heads (nn/masked_lm_head.h, nn/sequence_head.h, nn/span_head.h)
// DistilBERT has no token types, and another head for classes. Attention looks both ways. An
// encoder is one part: it is not divided among tensor or pipeline parallel processes.
#pragma once

#include <memory>

#include "src/model/transformer.h"
#include "src/nn/embedding.h"
#include "src/nn/masked_lm_head.h"
#include "src/nn/sequence_head.h"
#include "src/nn/span_head.h"

namespace tally::train {

class Encoder final : public Transformer {
 public:
  // Serves micro batches of up to config.micro_batch sequences of up to config.sequence tokens,
  // padded or not (Batch). Throws std::invalid_argument when the sequence is longer than the model
  // has positions, and OutOfMemory.
  Encoder(const Config& config, const ParameterTable& table, Stream& stream);
  Tensor logits() const override;

 private:
  void bind_heads(const ParameterTable& table);
  void reserve_heads(const Tensor& logits);
  void check(const Batch& batch) const override;
  void check_labels(const Batch& batch) const;
  void clear_gradients() override;
  void embed(const Activations& a, const Tensor& r) override;
  void backward_embedding(const Activations& a, const Tensor& dr) override;
  void evaluate_head(const Activations& a) override;
  void backward_head(const Activations& a, const Tensor& dy) override;
  MaskedTokens masked(const Activations& a) const;
  SequenceLabels sequences(const Activations& a) const;
  SpanLabels spans(const Activations& a) const;

  Embedding embedding_;
  ParamGrad token_types_;  // undefined where the model has none
  MaskedLmHead masked_lm_;
  SequenceHead sequence_;
  SpanHead span_;
};

}  // namespace tally::train
