// linear.h on the CPU, by ATen. 16-bit types are computed in float32 and rounded at the end.
#include <ATen/ops/addmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>

#include <cmath>
#include <numbers>

#include "src/device/cpu/aten_views.h"
#include "src/ops/linear/backends.h"

namespace tally::train::cpu {
namespace {

// y = a b (+ bias) (+ residual), rounded to y's type at the end.
void matmul(const at::Tensor& a, const at::Tensor& b, const at::Tensor& bias, const Tensor& y,
            const Tensor& residual = Tensor()) {
  at::Tensor out = aten_matrix(y);
  if (residual.defined() && is_narrow(y.dtype)) {
    at::Tensor sum = at::addmm(aten_operand(residual), a, b);
    out.copy_(bias.defined() ? sum.add_(bias) : sum);
  } else if (residual.defined()) {
    at::addmm_out(out, aten_matrix(residual), a, b);
    if (bias.defined()) out.add_(bias);
  } else if (is_narrow(y.dtype)) {
    out.copy_(bias.defined() ? at::addmm(bias, a, b) : at::mm(a, b));
  } else if (bias.defined()) {
    at::addmm_out(out, bias, a, b);
  } else {
    at::mm_out(out, a, b);
  }
}

// GELU, tanh form: v s(2u) with u = sqrt(2/pi) (v + 0.044715 v^3) and s the logistic function.
template <typename A>
struct TanhGelu {
  TALLY_INLINE static A logistic(A v) {
    constexpr A twice = static_cast<A>(-2 * 0.79788456080286535588);
    return 1 / (1 + exponential(twice * (v + static_cast<A>(0.044715) * v * v * v)));
  }
  TALLY_INLINE static A derivative(A v) {
    constexpr A twice = static_cast<A>(2 * 0.79788456080286535588);
    const A s = logistic(v);
    return s + v * s * (1 - s) * twice * (1 + static_cast<A>(3 * 0.044715) * v * v);
  }
  TALLY_INLINE static A value(A v) { return v * logistic(v); }
};

// GELU, erf form: v Phi(v). erfc keeps the relative accuracy of Phi for negative v.
template <typename A>
struct ErfGelu {
  TALLY_INLINE static A phi(A v) {
    return static_cast<A>(0.5) * std::erfc(v * static_cast<A>(-std::numbers::sqrt2 / 2));
  }
  TALLY_INLINE static A derivative(A v) {
    constexpr A density = static_cast<A>(std::numbers::inv_sqrtpi * std::numbers::sqrt2 / 2);
    return phi(v) + v * density * exponential(static_cast<A>(-0.5) * v * v);
  }
  TALLY_INLINE static A value(A v) { return v * phi(v); }
};

template <template <typename> class Gelu, typename T>
TALLY_CLONES void gelu(const T* v, int64_t n, T* y) {
  using A = accumulate_t<T>;
  for (int64_t i = 0; i < n; ++i) y[i] = static_cast<T>(Gelu<A>::value(static_cast<A>(v[i])));
}
template <template <typename> class Gelu, typename T>
TALLY_CLONES void gelu_derivative(T* v, int64_t n) {
  using A = accumulate_t<T>;
  for (int64_t i = 0; i < n; ++i) v[i] = static_cast<T>(Gelu<A>::derivative(static_cast<A>(v[i])));
}
// dv may be dy's memory. D: dy's type, which may be the one that it was computed in.
template <template <typename> class Gelu, typename T, typename D>
TALLY_CLONES void gelu_gradient(const D* dy, const T* v, int64_t n, T* dv) {
  using A = accumulate_t<T>;
  for (int64_t i = 0; i < n; ++i)
    dv[i] = static_cast<T>(static_cast<A>(dy[i]) * Gelu<A>::derivative(static_cast<A>(v[i])));
}

// Calls work(first, count) for parts of n elements.
template <typename F>
void in_parts(int64_t n, F&& work) {
  at::parallel_for(0, n, 1 << 14, [&](int64_t begin, int64_t end) { work(begin, end - begin); });
}

at::Tensor bias_operand(const Tensor& b) {
  if (!b.defined()) return {};
  return aten_operand(b).view({-1});
}

// dv = dy gelu'(v), shared among threads.
template <typename T, typename D>
void gelu_gradient(const D* dy, const T* v, int64_t count, T* dv, GeluKind kind) {
  in_parts(count, [&](int64_t first, int64_t n) {
    if (kind == GeluKind::tanh) {
      gelu_gradient<TanhGelu>(dy + first, v + first, n, dv + first);
    } else {
      gelu_gradient<ErfGelu>(dy + first, v + first, n, dv + first);
    }
  });
}

// dpre = (dy w) gelu'(saved). The GEMM's result goes into dpre itself where its type is the GEMM's
// and `saved` is elsewhere.
void backward_of_gelu(const Tensor& dy, const Tensor& w, const Tensor& saved, const Tensor& dpre,
                      GeluKind kind) {
  at::Tensor out = aten_matrix(dpre);
  const bool in_place = !is_narrow(dpre.dtype) && dpre.data != saved.data;
  const at::Tensor dgelu = in_place ? at::mm_out(out, aten_matrix(dy), aten_matrix(w))
                                    : at::mm(aten_operand(dy), aten_operand(w));
  with_type(dpre.dtype, "linear_backward_input_gelu", [&]<typename T>() {
    gelu_gradient(dgelu.data_ptr<accumulate_t<T>>(), saved.as<T>(), dpre.numel(), dpre.as<T>(),
                  kind);
  });
}

}  // namespace

void linear_forward(const Compute&, const Tensor& x, const Tensor& w, const Tensor& b,
                    const Tensor& y, const Tensor& residual) {
  matmul(aten_operand(x), aten_operand(w).t(), bias_operand(b), y, residual);
}

bool float64_gemms_serve(const Compute&) {
  return false;
}

SavedGelu faster_saved_gelu(const Compute&, DType, int64_t, int64_t, GeluKind) {
  return SavedGelu::input;
}

void linear_gelu_forward(const Compute& c, const Tensor& x, const Tensor& w, const Tensor& b,
                         const Tensor& saved, const Tensor& y, SavedGelu form, GeluKind kind) {
  cpu::linear_forward(c, x, w, b, saved, Tensor());
  cpu::gelu_forward(c, saved, y, kind);
  if (form == SavedGelu::input) return;
  with_type(saved.dtype, "linear_gelu_forward", [&]<typename T>() {
    in_parts(saved.numel(), [&](int64_t first, int64_t n) {
      T* v = saved.as<T>() + first;
      kind == GeluKind::tanh ? gelu_derivative<TanhGelu>(v, n) : gelu_derivative<ErfGelu>(v, n);
    });
  });
}

void gelu_forward(Stream&, const Tensor& pre, const Tensor& y, GeluKind kind) {
  with_type(pre.dtype, "gelu_forward", [&]<typename T>() {
    in_parts(pre.numel(), [&](int64_t first, int64_t n) {
      const T* from = pre.as<T>() + first;
      T* to = y.as<T>() + first;
      kind == GeluKind::tanh ? gelu<TanhGelu>(from, n, to) : gelu<ErfGelu>(from, n, to);
    });
  });
}

void gelu_backward(Stream&, const Tensor& dy, const Tensor& pre, const Tensor& dpre,
                   GeluKind kind) {
  with_type(pre.dtype, "gelu_backward", [&]<typename T>() {
    gelu_gradient(dy.as<T>(), pre.as<T>(), pre.numel(), dpre.as<T>(), kind);
  });
}

void linear_backward_input(const Compute&, const Tensor& dy, const Tensor& w, const Tensor& dx,
                           const Tensor& addend) {
  matmul(aten_operand(dy), aten_operand(w), {}, dx, addend);
}

void linear_backward_input_gelu(const Compute&, const Tensor& dy, const Tensor& w,
                                const Tensor& saved, const Tensor& dpre, const Tensor& db,
                                SavedGelu form, GeluKind kind) {
  if (form == SavedGelu::derivative) {
    at::Tensor dgelu = at::mm(aten_operand(dy), aten_operand(w));
    at::Tensor out = aten_matrix(dpre);
    out.copy_(dgelu.mul_(aten_operand(saved)));
  } else {
    backward_of_gelu(dy, w, saved, dpre, kind);
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
