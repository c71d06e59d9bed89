// y = x w^T + b, with x[M,in], w[out,in], b[out], y[M,out]. A layer may have no b.
// Layers call the operations of ops/linear and ops/fp8 on weights and biases through this alone: it
// decides in which type a GEMM is computed.
#pragma once

#include "src/nn/context.h"
#include "src/nn/fp8.h"
#include "src/nn/parameters.h"
#include "src/ops/linear/linear.h"

namespace tally::train {

// The value that an activation saves, [M,F]. In FP8 `amax` takes the largest magnitude of its
// output or, in a backward pass, of the gradient at its input.
struct SavedActivation {
  ActivationForm form;
  Tensor saved;
  Out amax;
};

// The input of a layer, x[M,in]. In FP8 its forward pass leaves the largest magnitudes of x for its
// backward pass in `amaxes`, f32[shards]. `amax_found`: the kernel that made x has left its largest
// magnitude in Linear::amax_of_input(amaxes). x itself may be cast: its rows in FP8, with the scale of
// `amaxes`.
struct LinearInput {
  Tensor x, amaxes;
  bool amax_found;
  LinearInput(const Tensor& input, const Tensor& magnitudes = Tensor(), bool found = false)
      : x(input), amaxes(magnitudes), amax_found(found) {}
  bool is_cast() const { return x.dtype == DType::e4m3; }
};

// The gradient at a layer's output, dy[M,out], with its casts where the layer is in FP8.
// Linear::gradient_at_output() or gather_gradient() makes it; it is valid until the next one is made.
// There is no dy where it was gathered in FP8.
struct OutputGradient {
  Tensor dy;
  Fp8Copies fp8;
};

struct Linear {
  ParamGrad weight, bias;
  // The division of the weight among tensor parallel processes: those of a column-parallel layer
  // divide dy, those of a row-parallel one x.
  Division division = Division::whole;
  Fp8Copies fp8;  // the weight's, of its shape; undefined: the layer is not in FP8

  Linear() = default;
  // The layer has a bias where the model has one.
  Linear(const ParameterTable& table, const WeightId& id)
      : weight(table.weight(id)), bias(table.bias(id)), division(table.find(id).division) {}
  // The layer has parameters that another layer may have, too.
  explicit Linear(const ParamGrad& w, const ParamGrad& b = ParamGrad()) : weight(w), bias(b) {}

  bool in_fp8() const { return fp8.rows.defined(); }
  // Kernels that make the next call's input, or the gradient at its output, leave the largest
  // magnitude of it here. Undefined: the layer is not in FP8.
  Out amax_of_input(const LayerContext& c, const Tensor& amaxes) const;
  Out amax_of_gradient(const LayerContext& c) const;

  // All tokens of `part`, the input of a column-parallel layer. With sequence parallelism each process
  // casts its own tokens, with the scale of all, where that gives the numbers of a cast of all.
  // start_gather_input() overlaps with what is enqueued later (TensorParallel::start_gather), and
  // finds the magnitudes of the forward pass in `amaxes`.
  LinearInput gather_input(const LayerContext& c, const Tensor& part, const Tensor& amaxes) const;
  LinearInput start_gather_input(const LayerContext& c, const Tensor& part,
                                 const Tensor& amaxes) const;

  // Adds `residual`[M,out] where it is defined.
  void forward(const LayerContext& c, const LinearInput& x, const Tensor& y,
               const Tensor& residual = Tensor()) const;
  // act = f(x w^T + b), and the saved value of it in f.saved.
  void forward_activation(const LayerContext& c, const LinearInput& x, const SavedActivation& f,
                          const Tensor& act) const;
  // A row-parallel layer: y is the sum over the processes, the first of which adds the bias. With
  // sequence parallelism y is this process's part of the tokens, else it may be the group's memory.
  void forward_row_parallel(const LayerContext& c, const LinearInput& x, const Tensor& y) const;

  // The functions below take the gradient at the output as this makes it, once for both GEMMs.
  // `amax_found`: amax_of_gradient() has the largest magnitude of dy.
  OutputGradient gradient_at_output(const LayerContext& c, const Tensor& dy,
                                    bool amax_found = false) const;
  // The same for a row-parallel layer, whose output's gradient each process has for a part of the
  // tokens.
  OutputGradient gather_gradient(const LayerContext& c, const Tensor& part) const;
  // Adds `addend`[M,in] where it is defined.
  void backward_input(const LayerContext& c, const OutputGradient& dy, const Tensor& dx,
                      const Tensor& addend = Tensor()) const;
  // The case in which x is the output of `before`.forward_activation(): the gradient at f's input
  // in dpre, which may be f.saved, and the gradient of before's bias.
  void backward_input_activation(const LayerContext& c, const OutputGradient& dy,
                                 const Linear& before, const SavedActivation& f,
                                 const Tensor& dpre) const;
  // The weight's gradient only. The bias's gradient is computed by other kernels (Norm,
  // SelfAttention). `adds`: to what is there, even where c.accumulate is false.
  void backward_weight(const LayerContext& c, const OutputGradient& dy, const LinearInput& x,
                       bool adds = false) const;
  // `sums` += the column sums of dy from column `first` on: the gradient of a part of the bias.
  static void backward_bias(const LayerContext& c, const Tensor& dy, int64_t first,
                            const Tensor& sums);
  // The same without dy: the bias's gradient from the column sums of dy and, where dbx[in] is
  // defined, the column sums of dx, which are added to it.
  void backward_bias_from_sums(const LayerContext& c, const Tensor& sums, const Tensor& dbx) const;
  // Both gradients of a column-parallel layer. x has all tokens, and may still be on its way
  // (TensorParallel::start_gather); dx is this process's part of them. With
  // sequence parallelism the sum of dx over the processes overlaps with the weight's gradient.
  // `addend`[M,in], where defined, is added to dx, in one process alone.
  void backward(const LayerContext& c, const OutputGradient& dy, const LinearInput& x,
                const Tensor& dx, const Tensor& addend = Tensor()) const;
  // All three gradients of a layer that one process has, as heads need them. `adds` as above.
  void backward_whole(const LayerContext& c, const Tensor& dy, const Tensor& x, const Tensor& dx,
                      bool adds = false) const;

 private:
  void forward_fp8(const LayerContext& c, const LinearInput& x, const Tensor& y,
                   const Tensor& added, const Tensor& residual) const;
  void backward_weight_fp8(const LayerContext& c, const OutputGradient& dy, const LinearInput& x,
                           bool accumulate) const;
  void cast_weight(const LayerContext& c) const;
  bool gathers_casts(const LayerContext& c, Fp8Scaling scaling) const;
  Fp8Magnitudes magnitudes_of_input(const LayerContext& c) const;
  Fp8Magnitudes magnitudes_of_gradient(const LayerContext& c) const;
};

}  // namespace tally::train
