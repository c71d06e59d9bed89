#include "src/ops/linear.h"

#include "src/ops/dispatch.h"

namespace tally::train {

void linear_forward(Stream& s, const Tensor& x, const Tensor& w, const Tensor& b, const Tensor& y,
                    const Tensor& residual) {
  TALLY_BACKEND(s, linear_forward(s, x, w, b, y, residual));
}

GeluKeeps faster_gelu_keeps(Stream& s, DType type, int64_t n, int64_t k) {
  return TALLY_BACKEND(s, faster_gelu_keeps(s, type, n, k));
}

bool float64_products_serve(Stream& s) {
  return TALLY_BACKEND(s, float64_products_serve(s));
}

void linear_gelu_forward(Stream& s, const Tensor& x, const Tensor& w, const Tensor& b,
                         const Tensor& kept, const Tensor& y, GeluKeeps keeps) {
  TALLY_BACKEND(s, linear_gelu_forward(s, x, w, b, kept, y, keeps));
}

void linear_backward_input(Stream& s, const Tensor& dy, const Tensor& w, const Tensor& dx) {
  TALLY_BACKEND(s, linear_backward_input(s, dy, w, dx));
}

void linear_backward_input_gelu(Stream& s, const Tensor& dy, const Tensor& w, const Tensor& kept,
                                const Tensor& dpre, const Tensor& db, GeluKeeps keeps) {
  TALLY_BACKEND(s, linear_backward_input_gelu(s, dy, w, kept, dpre, db, keeps));
}

void linear_backward_weight(Stream& s, const Tensor& dy, const Tensor& x, const Tensor& dw,
                            const Tensor& db, bool accumulate) {
  TALLY_BACKEND(s, linear_backward_weight(s, dy, x, dw, db, accumulate));
}

void linear_backward_bias(Stream& s, const Tensor& dy, int64_t first, const Tensor& db) {
  TALLY_BACKEND(s, linear_backward_bias(s, dy, first, db));
}

void linear_backward_bias_input(Stream& s, const Tensor& sums, const Tensor& w, const Tensor& db,
                                const Tensor& dbx) {
  TALLY_BACKEND(s, linear_backward_bias_input(s, sums, w, db, dbx));
}

void gelu_forward(Stream& s, const Tensor& pre, const Tensor& y) {
  TALLY_BACKEND(s, gelu_forward(s, pre, y));
}

void scale_rows(Stream& s, const Tensor& factors, const Tensor& x) {
  TALLY_BACKEND(s, scale_rows(s, factors, x));
}

}  // namespace tally::train
