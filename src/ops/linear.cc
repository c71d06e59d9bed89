#include "src/ops/linear.h"

#include "src/ops/dispatch.h"

namespace tally::train {

void linear_forward(Stream& s, const Tensor& x, const Tensor& w, const Tensor& b, const Tensor& y) {
  TALLY_BACKEND(s, linear_forward(s, x, w, b, y));
}

void linear_gelu_forward(Stream& s, const Tensor& x, const Tensor& w, const Tensor& b,
                         const Tensor& pre, const Tensor& y) {
  TALLY_BACKEND(s, linear_gelu_forward(s, x, w, b, pre, y));
}

void linear_backward_input(Stream& s, const Tensor& dy, const Tensor& w, const Tensor& dx) {
  TALLY_BACKEND(s, linear_backward_input(s, dy, w, dx));
}

void linear_backward_input_gelu(Stream& s, const Tensor& dy, const Tensor& w, const Tensor& pre,
                                const Tensor& dpre, const Tensor& db) {
  TALLY_BACKEND(s, linear_backward_input_gelu(s, dy, w, pre, dpre, db));
}

void linear_backward_weight(Stream& s, const Tensor& dy, const Tensor& x, const Tensor& dw,
                            const Tensor& db) {
  TALLY_BACKEND(s, linear_backward_weight(s, dy, x, dw, db));
}

void gelu_forward(Stream& s, const Tensor& pre, const Tensor& y) {
  TALLY_BACKEND(s, gelu_forward(s, pre, y));
}

}  // namespace tally::train
