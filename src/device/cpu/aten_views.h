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
    case DType::e4m3:
      return at::kFloat8_e4m3fn;
    case DType::e5m2:
      return at::kFloat8_e5m2;
  }
  return at::kByte;
}

// ATen knows no memory that is only read.
template <typename Self, typename Data>
at::Tensor aten_blob(const View<Self, Data>& t, at::IntArrayRef shape) {
  return at::from_blob(const_cast<void*>(static_cast<const void*>(t.data)), shape,
                       at::TensorOptions().dtype(scalar_type(t.dtype)));
}

template <typename Self, typename Data>
at::Tensor aten_view(const View<Self, Data>& t) {
  return aten_blob(t, {t.shape.data(), static_cast<size_t>(t.rank)});
}

// A view as a matrix: all dimensions but the last are rows.
template <typename Self, typename Data>
at::Tensor aten_matrix(const View<Self, Data>& t) {
  return aten_blob(t, {rows_of(t), columns_of(t)});
}

// The matrix in the type that it is computed in: itself, or a float32 copy of 16-bit numbers.
inline at::Tensor aten_operand(const In& t) {
  at::Tensor m = aten_matrix(t);
  return is_narrow(t.dtype) ? m.to(at::kFloat) : m;
}

}  // namespace tally::train::cpu
