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

Tensor TensorParallel::start_gather(Stream& s, const Tensor& part) const {
  if (!sequence) return part;
  group->start_all_gather(s, part, second);
  return second;
}

void TensorParallel::start_reduce(Stream& s, const Tensor& part) const {
  if (!divides()) return;
  if (sequence) {
    group->start_reduce_scatter(s, partial, part);
  } else {
    // Over NVLink it takes less time than the SMs that it would take from a GEMM.
    group->all_reduce(s, part);
  }
}

void TensorParallel::wait(Stream& s) const {
  if (divides()) group->wait(s);
}

}  // namespace tally::train
