#include "src/ops/linear/linear.h"

#include "src/ops/dispatch.h"
#include "src/ops/linear/backends.h"

namespace tally::train {

void linear_forward(const Compute& c, const Tensor& x, const Tensor& w, const Tensor& b,
                    const Tensor& y, const Tensor& residual) {
  TALLY_BACKEND(c.stream, linear_forward(c, x, w, b, y, residual));
}

SavedGelu faster_saved_gelu(const Compute& c, DType type, int64_t n, int64_t k, GeluKind kind) {
  return TALLY_BACKEND(c.stream, faster_saved_gelu(c, type, n, k, kind));
}

bool float64_gemms_serve(const Compute& c) {
  return TALLY_BACKEND(c.stream, float64_gemms_serve(c));
}

void linear_gelu_forward(const Compute& c, const Tensor& x, const Tensor& w, const Tensor& b,
                         const Tensor& saved, const Tensor& y, SavedGelu form, GeluKind kind) {
  TALLY_BACKEND(c.stream, linear_gelu_forward(c, x, w, b, saved, y, form, kind));
}

void linear_backward_input(const Compute& c, const Tensor& dy, const Tensor& w, const Tensor& dx,
                           const Tensor& addend) {
  TALLY_BACKEND(c.stream, linear_backward_input(c, dy, w, dx, addend));
}

void linear_backward_input_gelu(const Compute& c, const Tensor& dy, const Tensor& w,
                                const Tensor& saved, const Tensor& dpre, const Tensor& db,
                                SavedGelu form, GeluKind kind) {
  TALLY_BACKEND(c.stream, linear_backward_input_gelu(c, dy, w, saved, dpre, db, form, kind));
}

void linear_backward_weight(const Compute& c, const Tensor& dy, const Tensor& x, const Tensor& dw,
                            const Tensor& db, bool accumulate) {
  TALLY_BACKEND(c.stream, linear_backward_weight(c, dy, x, dw, db, accumulate));
}

void linear_backward_bias(Stream& s, const Tensor& dy, int64_t first, const Tensor& db) {
  TALLY_BACKEND(s, linear_backward_bias(s, dy, first, db));
}

void linear_backward_bias_input(Stream& s, const Tensor& sums, const Tensor& w, const Tensor& db,
                                const Tensor& dbx) {
  TALLY_BACKEND(s, linear_backward_bias_input(s, sums, w, db, dbx));
}

void gelu_forward(Stream& s, const Tensor& pre, const Tensor& y, GeluKind kind) {
  TALLY_BACKEND(s, gelu_forward(s, pre, y, kind));
}

void gelu_backward(Stream& s, const Tensor& dy, const Tensor& pre, const Tensor& dpre,
                   GeluKind kind) {
  TALLY_BACKEND(s, gelu_backward(s, dy, pre, dpre, kind));
}

void scale_rows(Stream& s, const Tensor& factors, const Tensor& x) {
  TALLY_BACKEND(s, scale_rows(s, factors, x));
}

}  // namespace tally::train
