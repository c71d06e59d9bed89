#include "src/nn/tensor_parallel.h"

namespace tally::train {
namespace {

bool is_fp8(DType type) {
  return type == DType::e4m3 || type == DType::e5m2;
}

}  // namespace

Tensor TensorParallel::gather(Stream& s, const Tensor& part) const {
  if (!sequence) return part;
  const Tensor all = all_of(is_fp8(part.dtype) ? gathered_casts : gathered, part.dtype, part);
  group->all_gather(s, part, all);
  return all;
}

Tensor TensorParallel::gather_gradient_casts(Stream& s, const Tensor& part) const {
  const Tensor all = all_of(gradient_casts, part.dtype, part);
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
  if (!sequence) return part;
  const Tensor all = all_of(is_fp8(part.dtype) ? second_casts : second, part.dtype, part);
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
