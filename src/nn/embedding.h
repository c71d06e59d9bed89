// Token and position embeddings with dropout: the bottom of the residual stream.
#pragma once

#include "src/nn/context.h"
#include "src/nn/parameters.h"
#include "src/ops/embedding/embedding.h"

namespace tally::train {

class Embedding {
 public:
  Embedding() = default;
  // `token`: the table, or this process's rows of it, `part`. `position`: undefined where positions
  // are rotary.
  Embedding(const ParamGrad& token, const ParamGrad& position, VocabularyPart part = {})
      : token_(token), position_(position), part_(part) {}

  // out[M,C] from ids[B,T] and, where defined, positions[B,T] (i32; else 0 ... T - 1 in each row).
  void forward(const LayerContext& c, const Tensor& ids, const Tensor& positions,
               const Dropout& dropout, const Tensor& out) const;
  // Adds to the tables' gradients, from the gradient dout[M,C].
  void backward(const LayerContext& c, const Tensor& ids, const Tensor& positions,
                const Dropout& dropout, const Tensor& dout) const;

  const ParamGrad& token() const { return token_; }
  const ParamGrad& position() const { return position_; }

 private:
  ParamGrad token_, position_;
  VocabularyPart part_;
};

}  // namespace tally::train
