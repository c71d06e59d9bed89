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
    // The exchange over NVLink takes less time than a GEMM would lose by the SMs that it takes.
    group->all_reduce(s, part);
  }
}

void TensorParallel::wait(Stream& s) const {
  if (divides()) group->wait(s);
}

}  // namespace tally::train
