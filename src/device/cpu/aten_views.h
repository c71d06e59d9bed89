// Our buffers as ATen tensors, without a copy.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/from_blob.h>

#include "src/device/cpu/types.h"
#include "src/device/tensor.h"

namespace tally::train::cpu {

inline at::ScalarType scalar_type(DType t) {
  switch (t) {
    case DType::f64:
      return at::kDouble;
    case DType::f32:
      return at::kFloat;
    case DType::bf16:
      return at::kBFloat16;
    case DType::f16:
      return at::kHalf;
    case DType::i64:
      return at::kLong;
    case DType::i32:
      return at::kInt;
    case DType::u16:
      return at::kUInt16;
    case DType::u8:
      return at::kByte;
  }
  return at::kByte;
}

inline at::Tensor aten_view(const Tensor& t) {
  return at::from_blob(t.data, at::IntArrayRef(t.shape.data(), static_cast<size_t>(t.rank)),
                       at::TensorOptions().dtype(scalar_type(t.dtype)));
}

// As a matrix: all dimensions but the last are rows.
inline at::Tensor aten_matrix(const Tensor& t) {
  return at::from_blob(t.data, {rows_of(t), columns_of(t)},
                       at::TensorOptions().dtype(scalar_type(t.dtype)));
}

// The matrix in the type that it is computed in: itself, or a float32 copy of 16-bit numbers.
inline at::Tensor aten_operand(const Tensor& t) {
  at::Tensor m = aten_matrix(t);
  return is_narrow(t.dtype) ? m.to(at::kFloat) : m;
}

}  // namespace tally::train::cpu
