#include "src/nn/embedding.h"

namespace tally::train {

// Each process looks up its rows of the vocabulary, the first one the positions, too. The sum is
// under one mask, which all of them draw.
void Embedding::forward(const LayerContext& c, const Tensor& ids, const Tensor& positions,
                        const Dropout& dropout, const Tensor& out) const {
  const Tensor position = c.tensor.shard() == 0 ? position_.value : Tensor();
  embedding_forward(c.compute, {ids, positions, part_}, {token_.value, position},
                    {dropout.hidden, dropout.at(DropoutSite::embedding)},
                    Out(c.tensor.partial_of(out)));
  c.tensor.reduce(c.compute, out);
}

void Embedding::backward(const LayerContext& c, const Tensor& ids, const Tensor& positions,
                         const Dropout& dropout, const Tensor& dout) const {
  embedding_backward(c.compute, {ids, positions, part_}, c.tensor.gather(c.compute, dout),
                     {dropout.hidden, dropout.at(DropoutSite::embedding)},
                     {Out(token_.gradient), Out(position_.gradient)});
}

}  // namespace tally::train
