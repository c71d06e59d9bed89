#include "src/nn/embedding.h"

#include "src/ops/embedding/embedding.h"

namespace tally::train {

void Embedding::forward(const LayerContext& c, const Tensor& ids, const Tensor& positions,
                        const Dropout& dropout, const Tensor& out) const {
  embedding_forward(c.compute, ids, positions, token_.value, position_.value, dropout.hidden,
                    dropout.at(DropoutSite::embedding), out);
}

void Embedding::backward(const LayerContext& c, const Tensor& ids, const Tensor& positions,
                         const Dropout& dropout, const Tensor& dout) const {
  embedding_backward(c.compute, ids, positions, dout, dropout.hidden,
                     dropout.at(DropoutSite::embedding), token_.gradient, position_.gradient,
                     c.workspace);
}

}  // namespace tally::train
