#include <ATen/ops/exp.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "src/device/cpu/aten_views.h"
#include "src/ops/linear/backends.h"
#include "src/ops/loss/backends.h"

namespace tally::train::cpu {
namespace {

// Calls work(i, scratch, values) for every row, several at a time; `values` is the memory of
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

// Four sums at a time, because a single one would wait for every addition.
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

// The loss of one row. `scratch` gets exp(logit - max), and at the label minus the sum of all
// others, which is the gradient there times the whole sum.
struct RowLoss {
  double sum, loss;
};
template <typename T, typename A>
RowLoss row_loss(const T* logits, int64_t n, int32_t label, at::Tensor& scratch) {
  A* e = scratch.data_ptr<A>();
  A top = static_cast<A>(logits[0]);
  for (int64_t j = 1; j < n; ++j) top = std::max(top, static_cast<A>(logits[j]));
  for (int64_t j = 0; j < n; ++j) e[j] = static_cast<A>(logits[j]) - top;
  scratch.exp_();
  const double of_label = static_cast<double>(e[label]);
  const double logit = static_cast<double>(logits[label]);
  e[label] = 0;
  const double others = sum_of(e, n);
  e[label] = static_cast<A>(-others);
  // A confident model has a small loss, whose accuracy is preserved.
  const double loss = of_label == 1
                          ? std::log1p(others)
                          : std::log(of_label + others) + static_cast<double>(top) - logit;
  return {of_label + others, loss};
}

}  // namespace

void cross_entropy(Stream&, const Tensor& logits, const Tensor& labels, int64_t vocabulary,
                   bool backward, LossFactor factor, const StepState* state, const Tensor& losses) {
  const double scale = factor.get() * (state ? static_cast<double>(state->loss_scale) : 1.0);
  with_type(logits.dtype, "cross_entropy", [&]<typename T>() {
    using A = accumulate_t<T>;
    const int64_t columns = columns_of(logits);
    each_row<A>(rows_of(logits), vocabulary, [&](int64_t i, at::Tensor& scratch, A* e) {
      T* row = logits.as<T>() + i * columns;
      const int32_t label = labels.as<int32_t>()[i];
      if (label < 0) {
        losses.as<A>()[i] = 0;
        if (backward) std::fill(row, row + columns, T(0));
        return;
      }
      const RowLoss r = row_loss<T, A>(row, vocabulary, label, scratch);
      losses.as<A>()[i] = static_cast<A>(r.loss);
      if (!backward) return;
      const A inverse = static_cast<A>(1.0 / r.sum), s = static_cast<A>(scale);
      for (int64_t j = 0; j < vocabulary; ++j) row[j] = static_cast<T>(e[j] * inverse * s);
      std::fill(row + vocabulary, row + columns, T(0));
    });
  });
}

// The fused version takes fewer passes over a row. Sums over a vocabulary do not fit f16.
bool linear_cross_entropy_pays(const Compute&, const Tensor& x, const Tensor&, const Tensor&,
                               int64_t, const Tensor&, const Tensor&, const Tensor&) {
  return x.dtype != DType::f16;
}

void linear_cross_entropy(const Compute& c, const Tensor& x, const Tensor& w, const Tensor& labels,
                          int64_t vocabulary, LossFactor factor, const StepState* state,
                          const Tensor& losses, const Tensor& scales, const Tensor& e) {
  cpu::linear_forward(c, x, w, Tensor(), e, Tensor());
  const double scale = factor.get() * (state ? static_cast<double>(state->loss_scale) : 1.0);
  with_type(e.dtype, "linear_cross_entropy", [&]<typename T>() {
    using A = accumulate_t<T>;
    const int64_t columns = columns_of(e);
    each_row<A>(rows_of(e), vocabulary, [&](int64_t i, at::Tensor& scratch, A* values) {
      T* row = e.as<T>() + i * columns;
      const int32_t label = labels.as<int32_t>()[i];
      if (label < 0) {
        losses.as<A>()[i] = scales.as<A>()[i] = 0;
        std::fill(row, row + columns, T(0));
        return;
      }
      const RowLoss r = row_loss<T, A>(row, vocabulary, label, scratch);
      for (int64_t j = 0; j < vocabulary; ++j) row[j] = static_cast<T>(values[j]);
      std::fill(row + vocabulary, row + columns, T(0));
      losses.as<A>()[i] = static_cast<A>(r.loss);
      scales.as<A>()[i] = static_cast<A>(scale / r.sum);
    });
  });
  cpu::scale_rows(c, scales, x);
}

void add_losses(Stream&, const Tensor& losses, LossFactor factor, StepState* state) {
  double sum = 0;
  const int64_t n = losses.numel();
  for (int64_t i = 0; i < n; ++i) {
    sum += losses.dtype == DType::f64 ? losses.as<double>()[i] : losses.as<float>()[i];
  }
  state->loss_sum += factor.get() * sum;
}

}  // namespace tally::train::cpu
