#include <ATen/ops/exp.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "src/device/cpu/aten_views.h"
#include "src/ops/linear/backends.h"
#include "src/ops/loss/backends.h"

namespace tally::train::cpu {
namespace {

// Calls work(i, scratch, values) for every row, some at a time; `values` is the memory of
// `scratch`, a row of the vocabulary.
template <typename A, typename F>
void each_row(int64_t rows, int64_t vocabulary, F&& work) {
  at::parallel_for(0, rows, 4, [&](int64_t begin, int64_t end) {
    std::vector<A> memory(static_cast<size_t>(vocabulary));
    at::Tensor scratch = at::from_blob(
        memory.data(), {vocabulary},
        at::TensorOptions().dtype(std::is_same_v<A, double> ? at::kDouble : at::kFloat));
    for (int64_t i = begin; i < end; ++i) work(i, scratch, memory.data());
  });
}

// Four sums side by side: a single one would wait for every addition.
template <typename A>
double sum_of(const A* e, int64_t n) {
  double sum[4] = {};
  int64_t j = 0;
  for (; j + 4 <= n; j += 4) {
    for (int64_t k = 0; k < 4; ++k) sum[k] += static_cast<double>(e[j + k]);
  }
  for (; j < n; ++j) sum[0] += static_cast<double>(e[j]);
  return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

// One row: `scratch` becomes exp(logit - max); returns their sum. `top` gets the maximum.
template <typename T, typename A>
double exponentials(const T* logits, int64_t n, at::Tensor& scratch, A* top) {
  A* e = scratch.data_ptr<A>();
  A highest = static_cast<A>(logits[0]);
  for (int64_t j = 1; j < n; ++j) highest = std::max(highest, static_cast<A>(logits[j]));
  for (int64_t j = 0; j < n; ++j) e[j] = static_cast<A>(logits[j]) - highest;
  scratch.exp_();
  *top = highest;
  return sum_of(e, n);
}

// One row: `scratch` becomes exp(logit - target's logit), at most 2^80 and 0 at the target; returns
// their sum. Without a target: exp(logit).
template <typename T, typename A>
double relative_exponentials(const T* logits, int64_t n, int32_t target, at::Tensor& scratch) {
  const A largest = static_cast<A>(80 * std::log(2.0));
  A* e = scratch.data_ptr<A>();
  const A shift = target < 0 ? A(0) : static_cast<A>(logits[target]);
  for (int64_t j = 0; j < n; ++j) {
    const A x = static_cast<A>(logits[j]) - shift;
    e[j] = x > largest ? largest : x;  // what is not a number stays so
  }
  scratch.exp_();
  if (target >= 0) e[target] = 0;
  return sum_of(e, n);
}

}  // namespace

void cross_entropy(Stream&, const Tensor& logits, const Tensor& targets, int64_t vocabulary,
                   bool backward, double factor, const StepState* state, const Tensor& losses) {
  const double scale = factor * (state ? static_cast<double>(state->loss_scale) : 1.0);
  with_type(logits.dtype, "cross_entropy", [&]<typename T>() {
    using A = accumulate_t<T>;
    const int64_t columns = columns_of(logits);
    each_row<A>(rows_of(logits), vocabulary, [&](int64_t i, at::Tensor& scratch, A* e) {
      T* row = logits.as<T>() + i * columns;
      const int32_t target = targets.as<int32_t>()[i];
      if (target < 0) {
        losses.as<A>()[i] = 0;
        if (backward) std::fill(row, row + columns, T(0));
        return;
      }
      A top = 0;
      const double sum = exponentials<T, A>(row, vocabulary, scratch, &top);
      losses.as<A>()[i] = static_cast<A>(std::log(sum) + static_cast<double>(top) -
                                         static_cast<double>(row[target]));
      if (!backward) return;
      const A inverse = static_cast<A>(1.0 / sum), s = static_cast<A>(scale);
      e[target] -= static_cast<A>(sum);
      for (int64_t j = 0; j < vocabulary; ++j) row[j] = static_cast<T>(e[j] * inverse * s);
      std::fill(row + vocabulary, row + columns, T(0));
    });
  });
}

// It takes fewer passes over a row. The range of f16 is too small for it.
bool linear_cross_entropy_pays(const Compute&, const Tensor& x, const Tensor&, const Tensor&,
                               int64_t, const Tensor&, const Tensor&, const Tensor&) {
  return x.dtype != DType::f16;
}

void linear_cross_entropy(const Compute& c, const Tensor& x, const Tensor& w, const Tensor& targets,
                          int64_t vocabulary, double factor, const StepState* state,
                          const Tensor& losses, const Tensor& shares, const Tensor& e) {
  cpu::linear_forward(c, x, w, Tensor(), e, Tensor());
  const double scale = factor * (state ? static_cast<double>(state->loss_scale) : 1.0);
  with_type(e.dtype, "linear_cross_entropy", [&]<typename T>() {
    using A = accumulate_t<T>;
    const int64_t columns = columns_of(e);
    each_row<A>(rows_of(e), vocabulary, [&](int64_t i, at::Tensor& scratch, const A* values) {
      T* row = e.as<T>() + i * columns;
      const int32_t target = targets.as<int32_t>()[i];
      const double sum = relative_exponentials<T, A>(row, vocabulary, target, scratch);
      for (int64_t j = 0; j < vocabulary; ++j) row[j] = static_cast<T>(values[j]);
      std::fill(row + vocabulary, row + columns, T(0));
      if (target >= 0) row[target] = static_cast<T>(static_cast<A>(-sum));
      losses.as<A>()[i] = static_cast<A>(target < 0 ? 0 : std::log1p(sum));
      shares.as<A>()[i] = static_cast<A>(target < 0 ? 0 : scale / (1 + sum));
    });
  });
  cpu::scale_rows(c, shares, x);
}

void add_losses(Stream&, const Tensor& losses, double factor, StepState* state) {
  double sum = 0;
  const int64_t n = losses.numel();
  for (int64_t i = 0; i < n; ++i) {
    sum += losses.dtype == DType::f64 ? losses.as<double>()[i] : losses.as<float>()[i];
  }
  state->loss_sum += factor * sum;
}

}  // namespace tally::train::cpu
