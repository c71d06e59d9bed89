// linear.h on the counting device. The rate of GEMMs includes the bytes that a GEMM reads and
// writes, and the bias, the residual and the activation in its epilogue.
#include "src/ops/counting.h"
#include "src/ops/linear/linear.h"

namespace tally::train::counting {
namespace {

// x[M,K] w[N,K]^T.
Gemm product(const In& x, const In& w) {
  return {.rows = x.dim(0), .cols = w.dim(0), .inner = w.dim(1)};
}

void forward(const Compute& c, In x, LinearWeights weights, Out, In) {
  count_gemm(c, x.dtype, product(x, weights.w));
}

// Both forms have the same size.
SavedValue faster_saved(const Compute&, DType, int64_t, int64_t, MlpActivation) {
  return SavedValue::derivative;
}

void forward_activation(const Compute& c, In x, LinearWeights weights, ActivationForm,
                        ActivationOutputs) {
  count_gemm(c, x.dtype, product(x, weights.w));
}

void forward_pass(Stream& s, In pre, Out y, MlpActivation, Out) {
  pass(s, pre, y);
}
void backward_pass(Stream& s, In dy, In pre, MlpActivation, ActivationPass out) {
  pass(s, dy, pre, out.dpre);
}

// dy[M,N] w[N,K].
void backward_input(const Compute& c, In dy, In w, Out, In) {
  count_gemm(c, dy.dtype, {.rows = dy.dim(0), .cols = w.dim(1), .inner = w.dim(0)});
}
void backward_input_activation(const Compute& c, In dy, In w, ActivationInput,
                               ActivationGradients) {
  count_gemm(c, dy.dtype, {.rows = dy.dim(0), .cols = w.dim(1), .inner = w.dim(0)});
}

// dy[M,N]^T x[M,K].
void backward_weight(const Compute& c, In dy, In x, WeightGradients out) {
  count_gemm(c, dy.dtype, {.rows = dy.dim(1), .cols = x.dim(1), .inner = dy.dim(0)});
  if (out.db.defined()) pass(c.stream, dy);
}

void backward_bias(Stream& s, In dy, int64_t, Out db) {
  pass(s, Tensor(db.data, dy.dtype, {dy.dim(0), db.numel()}));
}
void backward_bias_input(Stream& s, In sums, In w, Out db, Out dbx) {
  pass(s, sums, db, dbx, dbx.defined() ? w : In());
}

const OnCounting versions[] = {{linear_forward, forward},
                               {faster_saved_value, faster_saved},
                               {linear_activation_forward, forward_activation},
                               {mlp_activation_forward, forward_pass},
                               {mlp_activation_backward, backward_pass},
                               {linear_backward_input, backward_input},
                               {linear_backward_input_activation, backward_input_activation},
                               {linear_backward_weight, backward_weight},
                               {linear_backward_bias, backward_bias},
                               {linear_backward_bias_input, backward_bias_input}};

}  // namespace
}  // namespace tally::train::counting
