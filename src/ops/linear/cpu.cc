// linear.h on the CPU, by ATen. 16-bit types are computed in float32 and rounded at the end.
#include <ATen/ops/addmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/gelu_backward.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones_like.h>

#include "src/device/cpu/aten_views.h"
#include "src/ops/linear/backends.h"

namespace tally::train::cpu {
namespace {

// y = a b (+ bias) (+ residual), rounded to y's type at the end.
void matmul(const at::Tensor& a, const at::Tensor& b, const at::Tensor& bias, const Tensor& y,
            const Tensor& residual = Tensor()) {
  at::Tensor out = aten_matrix(y);
  if (residual.defined()) {
    at::Tensor sum = at::addmm(aten_operand(residual), a, b);
    out.copy_(bias.defined() ? sum.add_(bias) : sum);
  } else if (is_narrow(y.dtype)) {
    out.copy_(bias.defined() ? at::addmm(bias, a, b) : at::mm(a, b));
  } else if (bias.defined()) {
    at::addmm_out(out, bias, a, b);
  } else {
    at::mm_out(out, a, b);
  }
}

at::Tensor bias_operand(const Tensor& b) {
  if (!b.defined()) return {};
  return aten_operand(b).view({-1});
}

}  // namespace

void linear_forward(const Compute&, const Tensor& x, const Tensor& w, const Tensor& b,
                    const Tensor& y, const Tensor& residual) {
  matmul(aten_operand(x), aten_operand(w).t(), bias_operand(b), y, residual);
}

bool float64_gemms_serve(const Compute&) {
  return false;
}

SavedGelu faster_saved_gelu(const Compute&, DType, int64_t, int64_t) {
  return SavedGelu::input;
}

void linear_gelu_forward(const Compute& c, const Tensor& x, const Tensor& w, const Tensor& b,
                         const Tensor& saved, const Tensor& y, SavedGelu form) {
  cpu::linear_forward(c, x, w, b, saved, Tensor());
  cpu::gelu_forward(c, saved, y);
  if (form == SavedGelu::input) return;
  at::Tensor pre = aten_matrix(saved);
  pre.copy_(at::gelu_backward(at::ones_like(pre), pre, "tanh"));
}

void gelu_forward(Stream&, const Tensor& pre, const Tensor& y) {
  at::Tensor out = aten_matrix(y);
  at::gelu_out(out, aten_matrix(pre), "tanh");
}

void linear_backward_input(const Compute&, const Tensor& dy, const Tensor& w, const Tensor& dx) {
  matmul(aten_operand(dy), aten_operand(w), {}, dx);
}

void linear_backward_input_gelu(const Compute&, const Tensor& dy, const Tensor& w,
                                const Tensor& saved, const Tensor& dpre, const Tensor& db,
                                SavedGelu form) {
  at::Tensor dgelu = at::mm(aten_operand(dy), aten_operand(w));
  at::Tensor out = aten_matrix(dpre);
  if (form == SavedGelu::derivative) {
    out.copy_(dgelu.mul_(aten_operand(saved)));
  } else if (is_narrow(dpre.dtype)) {
    out.copy_(at::gelu_backward(dgelu, aten_operand(saved), "tanh"));
  } else {
    at::gelu_backward_out(out, dgelu, aten_matrix(saved), "tanh");
  }
  if (!db.defined()) return;
  with_type(dpre.dtype, "linear_backward_input_gelu", [&]<typename T>() {
    add_column_sums(dpre.as<T>(), rows_of(dpre), columns_of(dpre), columns_of(dpre),
                    db.as<accumulate_t<T>>());
  });
}

void linear_backward_weight(const Compute& c, const Tensor& dy, const Tensor& x, const Tensor& dw,
                            const Tensor& db, bool accumulate) {
  at::Tensor out = aten_matrix(dw);
  if (accumulate) {
    at::addmm_out(out, out, aten_operand(dy).t(), aten_operand(x));
  } else {
    at::mm_out(out, aten_operand(dy).t(), aten_operand(x));
  }
  if (db.defined()) cpu::linear_backward_bias(c, dy, 0, db);
}

void linear_backward_bias(Stream&, const Tensor& dy, int64_t first, const Tensor& db) {
  with_type(dy.dtype, "linear_backward_bias", [&]<typename T>() {
    add_column_sums(dy.as<T>() + first, rows_of(dy), columns_of(dy), db.numel(),
                    db.as<accumulate_t<T>>());
  });
}

void linear_backward_bias_input(Stream&, const Tensor& sums, const Tensor& w, const Tensor& db,
                                const Tensor& dbx) {
  const at::Tensor row = aten_matrix(sums);
  aten_matrix(db).add_(row);
  if (dbx.defined()) aten_matrix(dbx).add_(at::mm(row, aten_operand(w)));
}

void scale_rows(Stream&, const Tensor& factors, const Tensor& x) {
  aten_matrix(x).mul_(aten_matrix(factors).view({-1, 1}));
}

}  // namespace tally::train::cpu
