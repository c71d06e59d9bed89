// linear.h on the CPU, by ATen. 16-bit types are computed in float32 and rounded at the end.
#include <ATen/ops/addmm.h>
#include <ATen/ops/mm.h>

#include <cmath>
#include <numbers>
#include <stdexcept>

#include "src/device/cpu/aten_views.h"
#include "src/ops/fp8/fp8.h"
#include "src/ops/gemm/cpu.h"
#include "src/ops/linear/linear.h"

namespace tally::train::cpu {
namespace {

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

// Calls f.template operator()<F>() with the activation's formula.
template <typename F>
void with_formula(MlpActivation kind, F&& f) {
  switch (kind) {
    case MlpActivation::gelu_tanh:
      return f.template operator()<TanhGelu>();
    case MlpActivation::gelu_erf:
      return f.template operator()<ErfGelu>();
    case MlpActivation::swiglu:
      break;
  }
  throw std::logic_error("a gated activation is not one of linear.h");
}

template <template <typename> class Formula, typename T>
TALLY_CLONES void apply(const T* v, int64_t n, T* y) {
  using A = accumulate_t<T>;
  for (int64_t i = 0; i < n; ++i) y[i] = static_cast<T>(Formula<A>::value(static_cast<A>(v[i])));
}
template <template <typename> class Formula, typename T>
TALLY_CLONES void differentiate(T* v, int64_t n) {
  using A = accumulate_t<T>;
  for (int64_t i = 0; i < n; ++i)
    v[i] = static_cast<T>(Formula<A>::derivative(static_cast<A>(v[i])));
}
// dv may be dy's memory. D: dy's type, which may be the one that it was computed in.
template <template <typename> class Formula, typename T, typename D>
TALLY_CLONES void gradient_before(const D* dy, const T* v, int64_t n, T* dv) {
  using A = accumulate_t<T>;
  for (int64_t i = 0; i < n; ++i)
    dv[i] = static_cast<T>(static_cast<A>(dy[i]) * Formula<A>::derivative(static_cast<A>(v[i])));
}

// Calls work(first, count) for parts of n elements.
template <typename F>
void in_parts(int64_t n, F&& work) {
  at::parallel_for(0, n, 1 << 14, [&](int64_t begin, int64_t end) { work(begin, end - begin); });
}

at::Tensor bias_operand(const In& b) {
  if (!b.defined()) return {};
  return aten_operand(b).view({-1});
}

// dv = dy f'(v), shared among threads.
template <typename T, typename D>
void gradient_before(const D* dy, const T* v, int64_t count, T* dv, MlpActivation kind) {
  with_formula(kind, [&]<template <typename> class Formula>() {
    in_parts(count, [&](int64_t first, int64_t n) {
      gradient_before<Formula>(dy + first, v + first, n, dv + first);
    });
  });
}

// dpre = (dy w) f'(saved). The GEMM's result goes into dpre itself where its type is the GEMM's
// and `saved` is elsewhere.
void backward_from_input(const In& dy, const In& w, const In& saved, const Out& dpre,
                         MlpActivation kind) {
  at::Tensor out = aten_matrix(dpre);
  const bool in_place = !is_narrow(dpre.dtype) && dpre.data != saved.data;
  const at::Tensor dact = in_place ? at::mm_out(out, aten_matrix(dy), aten_matrix(w))
                                   : at::mm(aten_operand(dy), aten_operand(w));
  with_type(dpre.dtype, linear_backward_input_activation.name(), [&]<typename T>() {
    gradient_before(dact.data_ptr<accumulate_t<T>>(), saved.as<T>(), dpre.numel(), dpre.as<T>(),
                    kind);
  });
}

void forward_linear(const Compute&, In x, LinearWeights weights, Out y, In residual) {
  matmul(aten_operand(x), aten_operand(weights.w).t(), bias_operand(weights.b), y, residual);
}

SavedValue faster_saved(const Compute&, DType, int64_t, int64_t, MlpActivation) {
  return SavedValue::input;
}

void forward_pass(Stream& s, In pre, Out y, MlpActivation kind, Out amax) {
  with_type(pre.dtype, mlp_activation_forward.name(), [&]<typename T>() {
    with_formula(kind, [&]<template <typename> class Formula>() {
      in_parts(pre.numel(), [&](int64_t first, int64_t n) {
        apply<Formula>(pre.as<T>() + first, n, y.as<T>() + first);
      });
    });
  });
  if (amax.defined()) fp8_amax(s, y, amax);
}

void forward_activation(const Compute& c, In x, LinearWeights weights, ActivationForm form,
                        ActivationOutputs out) {
  forward_linear(c, x, weights, out.saved, {});
  forward_pass(c.stream, out.saved, out.y, form.kind, {});
  if (form.saved == SavedValue::input) return;
  with_type(out.saved.dtype, linear_activation_forward.name(), [&]<typename T>() {
    with_formula(form.kind, [&]<template <typename> class Formula>() {
      in_parts(out.saved.numel(), [&](int64_t first, int64_t n) {
        differentiate<Formula>(out.saved.as<T>() + first, n);
      });
    });
  });
}

void backward_input(const Compute&, In dy, In w, Out dx, In addend) {
  matmul(aten_operand(dy), aten_operand(w), {}, dx, addend);
}

void backward_input_activation(const Compute&, In dy, In w, ActivationInput f,
                               ActivationGradients out) {
  const Out& dpre = out.dpre;
  if (f.form.saved == SavedValue::derivative) {
    at::Tensor dact = at::mm(aten_operand(dy), aten_operand(w));
    at::Tensor product = aten_matrix(dpre);
    product.copy_(dact.mul_(aten_operand(f.saved)));
  } else {
    backward_from_input(dy, w, f.saved, dpre, f.form.kind);
  }
  if (!out.db.defined()) return;
  with_type(dpre.dtype, linear_backward_input_activation.name(), [&]<typename T>() {
    add_column_sums(dpre.as<T>(), rows_of(dpre), columns_of(dpre), columns_of(dpre),
                    out.db.as<accumulate_t<T>>());
  });
}

void backward_bias(Stream&, In dy, int64_t first, Out db) {
  with_type(dy.dtype, linear_backward_bias.name(), [&]<typename T>() {
    add_column_sums(dy.as<T>() + first, rows_of(dy), columns_of(dy), db.numel(),
                    db.as<accumulate_t<T>>());
  });
}

void backward_weight(const Compute& c, In dy, In x, WeightGradients out) {
  at::Tensor dw = aten_matrix(out.dw);
  if (out.accumulate) {
    at::addmm_out(dw, dw, aten_operand(dy).t(), aten_operand(x));
  } else {
    at::mm_out(dw, aten_operand(dy).t(), aten_operand(x));
  }
  if (out.db.defined()) backward_bias(c.stream, dy, 0, out.db);
}

void backward_bias_input(Stream&, In sums, In w, Out db, Out dbx) {
  const at::Tensor row = aten_matrix(sums);
  aten_matrix(db).add_(row);
  if (dbx.defined()) aten_matrix(dbx).add_(at::mm(row, aten_operand(w)));
}

void backward_pass(Stream& s, In dy, In pre, MlpActivation kind, ActivationPass out) {
  with_type(pre.dtype, mlp_activation_backward.name(), [&]<typename T>() {
    gradient_before(dy.as<T>(), pre.as<T>(), pre.numel(), out.dpre.as<T>(), kind);
  });
  if (out.db.defined()) backward_bias(s, out.dpre, 0, out.db);
  if (out.amax.defined()) fp8_amax(s, out.dpre, out.amax);
}

const OnCpu linear_versions[] = {{linear_forward, forward_linear},
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
}  // namespace tally::train::cpu
