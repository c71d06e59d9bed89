#include "src/nn/embedding.h"

namespace tally::train {

// Each process looks up its rows of the vocabulary, the first one the positions, too. The sum is
// under one mask, which all of them draw.
void Embedding::forward(const LayerContext& c, const Tensor& ids, const Tensor& positions,
                        const Dropout& dropout, const Tensor& out) const {
  const Tensor position = c.tensor.shard() == 0 ? position_.value : Tensor();
  embedding_forward(c.compute, ids, positions, token_.value, position, dropout.hidden,
                    dropout.at(DropoutSite::embedding), c.tensor.partial_of(out), part_);
  c.tensor.reduce(c.compute, out);
}

void Embedding::backward(const LayerContext& c, const Tensor& ids, const Tensor& positions,
                         const Dropout& dropout, const Tensor& dout) const {
  embedding_backward(c.compute, ids, positions, c.tensor.gather(c.compute, dout), dropout.hidden,
                     dropout.at(DropoutSite::embedding), token_.gradient, position_.gradient,
                     c.workspace, part_);
}

}  // namespace tally::train
