#include "src/nn/tensor_parallel.h"

namespace tally::train {

Tensor TensorParallel::gather(Stream& s, const Tensor& part) const {
  if (!sequence) return part;
  group->all_gather(s, part, gathered);
  return gathered;
}

void TensorParallel::reduce(Stream& s, const Tensor& part) const {
  if (!divides()) return;
  if (sequence) {
    group->reduce_scatter(s, partial, part);
  } else {
    group->all_reduce(s, part);
  }
}

}  // namespace tally::train
