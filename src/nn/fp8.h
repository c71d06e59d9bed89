// FP8 in the GEMMs of the blocks' linear layers (ops/fp8/fp8.h). Masters, weights, the activations
// between GEMMs, norms, attention and heads stay as they are.
//   y = q(x) q(w)^T;  dx = q(dy) q(w);  dw = q(dy)^T q(x)
// Each q has its own scale, from the numbers of that moment. Weights are cast once a step: in the
// forward pass of its first micro batch, where they are read for the first time. A matrix that
// tensor parallel processes divide has one scale, so that a layout changes nothing but rounding.
#pragma once

#include "src/nn/tensor_parallel.h"
#include "src/ops/fp8/fp8.h"

namespace tally::train {

// Scratch of the layers of a stage. An operand stays until the next one of its kind is cast.
struct Fp8Scratch {
  DType forward = DType::e4m3, backward = DType::e4m3;  // types of x and w, and of dy
  Tensor x;                    // bytes: rows in a forward pass, columns in a backward pass
  Tensor dy_rows, dy_columns;  // bytes
  Tensor x_scale, dy_scale;    // f32[1]
  Tensor amax;                 // f32[1], of this process's part of a matrix
  Tensor amaxes;               // f32[shards], of all parts of a weight or dy
  // A forward pass casts the weights before it reads them: of a step's first micro batch, and of
  // evaluations, which do not know whether the weights have changed.
  bool casts_weights = false;

  bool defined() const { return amax.defined(); }
};

// Finds a matrix's magnitudes: `divided`, from the parts of all processes.
struct Fp8Magnitudes {
  const TensorParallel& tensor;
  const Fp8Scratch& scratch;
  bool divided;

  bool gathers() const;
  // This process's own magnitude lies here before all are put together in `amaxes`. The kernel that
  // makes the matrix may leave it here.
  Tensor own(const Tensor& amaxes) const { return gathers() ? scratch.amax : amaxes.rows(0, 1); }
  // amaxes = the largest magnitude of x, or those of all parts of it. `found`: own() has this
  // process's. Returns the part of `amaxes` that was written.
  Tensor find(const Compute& c, const Tensor& x, bool found, const Tensor& amaxes) const;
};

inline Fp8Matrix rows_of(const Fp8Copies& q) {
  return {q.rows, q.scale};
}
inline Fp8Matrix columns_of(const Fp8Copies& q) {
  return {q.columns, q.scale};
}

}  // namespace tally::train
