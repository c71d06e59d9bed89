// FP8 in the GEMMs of the blocks' linear layers (ops/fp8/fp8.h). Masters, weights, the activations
// between GEMMs, norms, attention and heads stay as they are.
//   y = q(x) q(w)^T;  dx = q(dy) q(w);  dw = q(dy)^T q(x)
// Each q has its own scales, from the numbers of that moment; the recipe says which numbers share one.
// Weights are cast once a step: in the forward pass of its first micro batch, where they are read for
// the first time. Where a whole matrix has one scale, it is that of all tensor parallel processes
// that divide it, so that a layout changes nothing but rounding. A row or a block is scaled by what
// one process has of it: these scales are powers of two, and a layout changes nothing but rounding of
// what is smaller than the format's range.
#pragma once

#include "src/nn/tensor_parallel.h"
#include "src/ops/fp8/fp8.h"

namespace tally::train {

// Scratch of the layers of a stage. An operand stays until the next one of its kind is cast.
struct Fp8Scratch {
  Fp8Recipe recipe = fp8_recipes[0];
  DType forward = DType::e4m3, backward = DType::e4m3;  // types of x and w, and of dy
  Tensor x;                    // bytes: rows in a forward pass, columns in a backward pass
  Tensor dy_rows, dy_columns;  // bytes
  Tensor x_scales, dy_row_scales, dy_column_scales;  // f32, those of the largest operands
  Tensor amax;                                       // f32[1], of this process's part of a matrix
  Tensor amaxes;                                     // f32[shards], of all parts of a weight or dy
  // A forward pass casts the weights before it reads them: of a step's first micro batch, and of
  // evaluations, which do not know whether the weights have changed.
  bool casts_weights = false;
  // The casts of the matrices that have memory for it (ParamGrad::fp8) were gathered before this
  // forward pass reads them, and their weights were not.
  bool gathered = false;

  bool defined() const { return amax.defined(); }
  // Casts of x[height,width] and dy lie there.
  Fp8Copies rows_of_x(int64_t height, int64_t width) const {
    return {Tensor(x.data, forward, {height, width}), {}, x_scales, {}, recipe.activations};
  }
  Fp8Copies columns_of_x(int64_t height, int64_t width) const {
    return {{}, Tensor(x.data, forward, {width, height}), {}, x_scales, recipe.activations};
  }
  Fp8Copies copies_of_dy(int64_t height, int64_t width) const {
    return {Tensor(dy_rows.data, backward, {height, width}),
            Tensor(dy_columns.data, backward, {width, height}), dy_row_scales, dy_column_scales,
            recipe.gradients};
  }
};

// Finds the magnitude of a matrix that has one scale: `divided`, from the parts of all processes.
// Casts with other scalings find theirs by themselves.
struct Fp8Magnitudes {
  const TensorParallel& tensor;
  const Fp8Scratch& scratch;
  Fp8Scaling scaling;
  bool divided;

  bool needed() const { return scaling == Fp8Scaling::tensor; }
  bool gathers() const;
  // This process's own magnitude lies here before all are put together in `amaxes`. The kernel that
  // makes the matrix may leave it here. Undefined where it is not needed.
  Tensor own(const Tensor& amaxes) const {
    if (!needed()) return {};
    return gathers() ? scratch.amax : amaxes.rows(0, 1);
  }
  // amaxes = the largest magnitude of x, or those of all parts of it. `found`: own() has this
  // process's. Returns the part of `amaxes` that was written; undefined where it is not needed.
  Tensor find(const Compute& c, const Tensor& x, bool found, const Tensor& amaxes) const;
};

inline Fp8Matrix rows_of(const Fp8Copies& q) {
  return {q.rows, q.row_scales, q.scaling};
}
inline Fp8Matrix columns_of(const Fp8Copies& q) {
  return {q.columns, q.column_scales, q.scaling};
}

}  // namespace tally::train
