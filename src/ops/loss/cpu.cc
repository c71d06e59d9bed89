#include <algorithm>
#include <cmath>
#include <vector>

#include "src/device/cpu/aten_views.h"
#include "src/device/cpu/vector_math.h"
#include "src/ops/gemm/cpu.h"
#include "src/ops/loss/loss.h"
#include "src/ops/rows/rows.h"

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

// The sums of one row. `e` gets exp(logit - max), and at the label minus the sum of all others,
// which is the gradient there times the whole sum.
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

double scale_of(const LossGradient& g) {
  return g.factor.get() * (g.state ? static_cast<double>(g.state->loss_scale) : 1.0);
}

void loss(Stream&, Out logits, Labels labels, std::optional<LossGradient> gradient, Out losses) {
  const int64_t vocabulary = labels.vocabulary;
  const bool backward = gradient.has_value();
  const double scale = backward ? scale_of(*gradient) : 0;
  with_type(logits.dtype, cross_entropy.name(), [&]<typename T>() {
    using A = accumulate_t<T>;
    const int64_t columns = columns_of(logits);
    each_row<A>(rows_of(logits), vocabulary, [&](int64_t i, A* e) {
      T* row = logits.as<T>() + i * columns;
      const int32_t label = labels.labels.as<int32_t>()[i];
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
bool fused_pays(const Compute&, const HeadOperands& head, const HeadResults&) {
  return head.x.dtype != DType::f16;
}

void fused(const Compute& c, const HeadOperands& head, LossGradient gradient,
           const HeadResults& results) {
  const auto& [losses, scales, e] = results;
  const int64_t vocabulary = head.labels.vocabulary;
  matmul(aten_operand(head.x), aten_operand(head.w).t(), {}, e);
  const double scale = scale_of(gradient);
  with_type(e.dtype, linear_cross_entropy.name(), [&]<typename T>() {
    using A = accumulate_t<T>;
    const int64_t columns = columns_of(e);
    each_row<A>(rows_of(e), vocabulary, [&](int64_t i, A* values) {
      T* row = e.as<T>() + i * columns;
      const int32_t label = head.labels.labels.as<int32_t>()[i];
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
  scale_rows(c.stream, scales, head.x);
}

void add(Stream&, In losses, LossFactor factor, double* sum) {
  double all = 0;
  const int64_t n = losses.numel();
  for (int64_t i = 0; i < n; ++i) {
    all += losses.dtype == DType::f64 ? losses.as<double>()[i] : losses.as<float>()[i];
  }
  *sum += factor.get() * all;
}

void count_correct(Stream&, In logits, Labels labels, double* correct) {
  with_type(logits.dtype, add_correct.name(), [&]<typename T>() {
    using A = accumulate_t<T>;
    const int64_t columns = columns_of(logits);
    for (int64_t i = 0; i < rows_of(logits); ++i) {
      const T* row = logits.as<T>() + i * columns;
      const int32_t label = labels.labels.as<int32_t>()[i];
      if (label < 0) continue;
      const A own = static_cast<A>(row[label]);
      bool largest = true;
      for (int64_t j = 0; j < labels.vocabulary && largest; ++j) {
        const A other = static_cast<A>(row[j]);
        largest = other < own || (other == own && j >= label);
      }
      if (largest) *correct += 1;
    }
  });
}

const OnCpu loss_versions[] = {{cross_entropy, loss},
                               {linear_cross_entropy, fused},
                               {linear_cross_entropy_pays, fused_pays},
                               {add_losses, add},
                               {add_correct, count_correct}};

}  // namespace
}  // namespace tally::train::cpu
