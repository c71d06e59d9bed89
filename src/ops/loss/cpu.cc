#include <algorithm>
#include <cmath>
#include <vector>

#include "src/device/cpu/aten_views.h"
#include "src/device/cpu/vector_math.h"
#include "src/ops/linear/backends.h"
#include "src/ops/loss/backends.h"

namespace tally::train::cpu {
namespace {

// Calls work(i, scratch) for every row, some at a time; `scratch` has room for a row of the
// vocabulary.
template <typename A, typename F>
void each_row(int64_t rows, int64_t vocabulary, F&& work) {
  at::parallel_for(0, rows, 4, [&](int64_t begin, int64_t end) {
    std::vector<A> scratch(static_cast<size_t>(vocabulary));
    for (int64_t i = begin; i < end; ++i) work(i, scratch.data());
  });
}

// Of one row. `e` gets exp(logit - max), and at the label minus the sum of all others, which is the
// gradient there times the whole sum.
struct RowLoss {
  double sum, loss;
};
template <typename T, typename A>
TALLY_CLONES RowLoss row_loss(const T* logits, int64_t n, int32_t label, A* e) {
  for (int64_t j = 0; j < n; ++j) e[j] = static_cast<A>(logits[j]);
  const A top = maximum(e, n);
  for (int64_t j = 0; j < n; ++j) e[j] = exponential(e[j] - top);
  const double of_label = static_cast<double>(e[label]);
  const double logit = static_cast<double>(static_cast<A>(logits[label]));
  e[label] = 0;
  const double others = sum_in_lanes(n, [e](int64_t j) { return e[j]; });
  e[label] = static_cast<A>(-others);
  // A model that is sure has a small loss, which keeps its accuracy.
  const double loss = of_label == 1
                          ? std::log1p(others)
                          : std::log(of_label + others) + static_cast<double>(top) - logit;
  return {of_label + others, loss};
}

// to[j] = e[j] a b, and 0 from n to `columns`.
template <typename T, typename A>
TALLY_CLONES void write_row(const A* e, int64_t n, int64_t columns, A a, A b, T* to) {
  for (int64_t j = 0; j < n; ++j) to[j] = static_cast<T>(e[j] * a * b);
  std::fill(to + n, to + columns, T(0));
}

}  // namespace

void cross_entropy(Stream&, const Tensor& logits, const Tensor& labels, int64_t vocabulary,
                   bool backward, LossFactor factor, const StepState* state, const Tensor& losses) {
  const double scale = factor.get() * (state ? static_cast<double>(state->loss_scale) : 1.0);
  with_type(logits.dtype, "cross_entropy", [&]<typename T>() {
    using A = accumulate_t<T>;
    const int64_t columns = columns_of(logits);
    each_row<A>(rows_of(logits), vocabulary, [&](int64_t i, A* e) {
      T* row = logits.as<T>() + i * columns;
      const int32_t label = labels.as<int32_t>()[i];
      if (label < 0) {
        losses.as<A>()[i] = 0;
        if (backward) std::fill(row, row + columns, T(0));
        return;
      }
      const RowLoss r = row_loss<T, A>(row, vocabulary, label, e);
      losses.as<A>()[i] = static_cast<A>(r.loss);
      if (!backward) return;
      write_row(e, vocabulary, columns, static_cast<A>(1.0 / r.sum), static_cast<A>(scale), row);
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
    each_row<A>(rows_of(e), vocabulary, [&](int64_t i, A* values) {
      T* row = e.as<T>() + i * columns;
      const int32_t label = labels.as<int32_t>()[i];
      if (label < 0) {
        losses.as<A>()[i] = scales.as<A>()[i] = 0;
        std::fill(row, row + columns, T(0));
        return;
      }
      const RowLoss r = row_loss<T, A>(row, vocabulary, label, values);
      write_row(values, vocabulary, columns, A(1), A(1), row);
      losses.as<A>()[i] = static_cast<A>(r.loss);
      scales.as<A>()[i] = static_cast<A>(scale / r.sum);
    });
  });
  cpu::scale_rows(c, scales, x);
}

void add_losses(Stream&, const Tensor& losses, LossFactor factor, double* sum) {
  double all = 0;
  const int64_t n = losses.numel();
  for (int64_t i = 0; i < n; ++i) {
    all += losses.dtype == DType::f64 ? losses.as<double>()[i] : losses.as<float>()[i];
  }
  *sum += factor.get() * all;
}

void add_correct(Stream&, const Tensor& logits, const Tensor& labels, int64_t vocabulary,
                 double* correct) {
  with_type(logits.dtype, "add_correct", [&]<typename T>() {
    using A = accumulate_t<T>;
    const int64_t columns = columns_of(logits);
    for (int64_t i = 0; i < rows_of(logits); ++i) {
      const T* row = logits.as<T>() + i * columns;
      const int32_t label = labels.as<int32_t>()[i];
      if (label < 0) continue;
      const A own = static_cast<A>(row[label]);
      bool largest = true;
      for (int64_t j = 0; j < vocabulary && largest; ++j) {
        const A other = static_cast<A>(row[j]);
        largest = other < own || (other == own && j >= label);
      }
      if (largest) *correct += 1;
    }
  });
}

}  // namespace tally::train::cpu
