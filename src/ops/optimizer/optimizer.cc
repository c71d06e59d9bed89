#include "src/ops/optimizer/optimizer.h"

#include "src/ops/dispatch.h"
#include "src/ops/optimizer/backends.h"

namespace tally::train {

void gradient_norm(Stream& s, const Tensor& gradients, StepState* state, const Tensor& workspace) {
  TALLY_BACKEND(s, gradient_norm(s, gradients, state, workspace));
}

void add_gradient_squares(Stream& s, const Tensor& gradients, StepState* state,
                          const Tensor& workspace) {
  TALLY_BACKEND(s, add_gradient_squares(s, gradients, state, workspace));
}

void finish_gradient_norm(Stream& s, StepState* state) {
  TALLY_BACKEND(s, finish_gradient_norm(s, state));
}

void add_gradients(Stream& s, const Tensor& from, const Tensor& to) {
  TALLY_BACKEND(s, add_gradients(s, from, to));
}

size_t norm_workspace(Stream& s, int64_t elements) {
  return TALLY_BACKEND(s, norm_workspace(s, elements));
}

void adamw_step(Stream& s, const AdamW& hyper, const StepState* state, int64_t decayed,
                const Tensor& gradients, const Tensor& master, const Tensor& m, const Tensor& v,
                const Tensor& weights, bool zero_gradients, int sms) {
  TALLY_BACKEND(s, adamw_step(s, hyper, state, decayed, gradients, master, m, v, weights,
                              zero_gradients, sms));
}

void sgd_step(Stream& s, double momentum, const StepState* state, int64_t decayed,
              const Tensor& gradients, const Tensor& master, const Tensor& m, const Tensor& weights,
              bool zero_gradients) {
  TALLY_BACKEND(
      s, sgd_step(s, momentum, state, decayed, gradients, master, m, weights, zero_gradients));
}

void lamb_direction(Stream& s, const AdamW& hyper, const StepState* state,
                    const LambBuffers& buffers, const LambTables& tables) {
  TALLY_BACKEND(s, lamb_direction(s, hyper, state, buffers, tables));
}

void lamb_step(Stream& s, const StepState* state, const LambBuffers& buffers,
               const LambTables& tables, bool zero_gradients) {
  TALLY_BACKEND(s, lamb_step(s, state, buffers, tables, zero_gradients));
}

}  // namespace tally::train
