#include "src/nn/tensor_parallel.h"

namespace tally::train {
Tensor TensorParallel::gather(Stream& s, const Tensor& part) const {
  return sequence ? gather_to(s, gathered, part) : part;
}

Tensor TensorParallel::gather_to(Stream& s, const Tensor& memory, const Tensor& part) const {
  const Tensor all = all_of(memory, part.dtype, part);
  group->all_gather(s, part, all);
  return all;
}

Tensor TensorParallel::place_of_cast(const Tensor& memory, DType format, const Tensor& part) const {
  return all_of(memory, format, part).rows(shard() * part.dim(0), part.dim(0));
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
  return sequence ? start_gather_to(s, second, part) : part;
}

Tensor TensorParallel::start_gather_to(Stream& s, const Tensor& memory, const Tensor& part) const {
  const Tensor all = all_of(memory, part.dtype, part);
  group->start_all_gather(s, part, all);
  return all;
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
