#include <algorithm>
#include <cmath>
#include <vector>

#include "src/device/cpu/types.h"
#include "src/device/cpu/vector_math.h"
#include "src/ops/norm/norm.h"

namespace tally::train::cpu {
namespace {

// Rows a thread takes at least, so that small inputs stay on one.
constexpr int64_t grain = 16;

// `centered`: LayerNorm; else RMSNorm, which has no mean and no beta.
template <typename T, bool centered>
struct Forward {
  using A = accumulate_t<T>;
  const T* gamma;
  const T* beta;
  double epsilon;
  A* mean;
  A* rstd;

  // One row: statistics in double, two passes.
  TALLY_CLONES void operator()(int64_t row, int64_t columns, const T* x, T* y) const {
    double mu = 0;
    if constexpr (centered) {
      const double sum = sum_in_lanes(columns, [x](int64_t j) { return x[j]; });
      mu = sum / static_cast<double>(columns);
    }
    const double squares = sum_in_lanes(columns, [x, mu](int64_t j) {
      const double d = static_cast<double>(x[j]) - mu;
      return d * d;
    });
    const double r = 1.0 / std::sqrt(squares / static_cast<double>(columns) + epsilon);
    const A m = static_cast<A>(mu), scale = static_cast<A>(r);
    if constexpr (centered) mean[row] = m;
    rstd[row] = scale;
    for (int64_t j = 0; j < columns; ++j) {
      const A normal = (static_cast<A>(x[j]) - m) * scale;
      if constexpr (centered) {
        y[j] = static_cast<T>(normal * static_cast<A>(gamma[j]) + static_cast<A>(beta[j]));
      } else {
        y[j] = static_cast<T>(normal * static_cast<A>(gamma[j]));
      }
    }
  }
};

// Calls work(Forward) with the norm that beta asks for.
template <typename T, typename Work>
void with_forward(const NormWeights& w, const NormOutputs& out, const Work& work) {
  using A = accumulate_t<T>;
  if (w.beta.defined())
    return work(Forward<T, true>{w.gamma.as<T>(), w.beta.as<T>(), w.epsilon, out.mean.as<A>(),
                                 out.rstd.as<A>()});
  work(Forward<T, false>{w.gamma.as<T>(), nullptr, w.epsilon, nullptr, out.rstd.as<A>()});
}

template <typename T, bool centered>
struct Backward {
  using A = accumulate_t<T>;
  const T* gamma;
  const T* residual_grad;  // null: none
  T* dx;
  T* ddelta;  // null: none
  double dropout;
  uint64_t seed;

  // `scratch`: two rows. dx = rstd (g - mean(g) - n mean(g n)) with n the normalised row and g = dy
  // gamma.
  TALLY_CLONES void operator()(int64_t row, int64_t columns, const T* dy, const T* x, A mean,
                               A rstd, A* scratch) const {
    const auto g_at = [&](int64_t j) {
      return static_cast<double>(dy[j]) * static_cast<double>(gamma[j]);
    };
    double sum = 0;
    if constexpr (centered) sum = sum_in_lanes(columns, g_at);
    const double product = sum_in_lanes(columns, [&](int64_t j) {
      return g_at(j) * static_cast<double>((static_cast<A>(x[j]) - mean) * rstd);
    });
    const A mean_g = static_cast<A>(sum / static_cast<double>(columns));
    const A mean_gn = static_cast<A>(product / static_cast<double>(columns));
    const int64_t first = row * columns;
    A *const d = scratch, *const mask = scratch + columns;
    for (int64_t j = 0; j < columns; ++j) {
      const A normal = (static_cast<A>(x[j]) - mean) * rstd;
      const A g = static_cast<A>(dy[j]) * static_cast<A>(gamma[j]);
      d[j] = rstd * (g - mean_g - normal * mean_gn);
    }
    if (residual_grad)
      for (int64_t j = 0; j < columns; ++j) d[j] += static_cast<A>(residual_grad[first + j]);
    for (int64_t j = 0; j < columns; ++j) dx[first + j] = static_cast<T>(d[j]);
    if (!ddelta) return;
    if (dropout > 0) {
      draw_mask(dropout, seed, static_cast<uint64_t>(first), columns, mask);
      for (int64_t j = 0; j < columns; ++j) d[j] *= mask[j];
    }
    for (int64_t j = 0; j < columns; ++j) ddelta[first + j] = static_cast<T>(d[j]);
  }
};

constexpr int64_t column_block = 64;

// Sums `n` columns, at most a block.
template <typename T, typename A>
TALLY_CLONES void block_gradients(int64_t rows, int64_t columns, int64_t n, const T* dy, const T* x,
                                  const A* mean, const A* rstd, A* dgamma, A* dbeta) {
  double gamma_sum[column_block] = {}, beta_sum[column_block] = {};
  for (int64_t i = 0; i < rows; ++i, dy += columns, x += columns) {
    const A m = mean ? mean[i] : A(0), r = rstd[i];
    for (int64_t j = 0; j < n; ++j) {
      gamma_sum[j] += static_cast<double>(static_cast<A>(dy[j]) * (static_cast<A>(x[j]) - m) * r);
      beta_sum[j] += static_cast<double>(dy[j]);
    }
  }
  for (int64_t j = 0; j < n; ++j) {
    dgamma[j] += static_cast<A>(gamma_sum[j]);
    if (dbeta) dbeta[j] += static_cast<A>(beta_sum[j]);
  }
}

// dgamma += sum dy n, dbeta (null: none) += sum dy, row after row; threads share the columns.
template <typename T>
void parameter_gradients(int64_t rows, int64_t columns, const T* dy, const T* x,
                         const accumulate_t<T>* mean, const accumulate_t<T>* rstd,
                         accumulate_t<T>* dgamma, accumulate_t<T>* dbeta) {
  at::parallel_for(
      0, (columns + column_block - 1) / column_block, 1, [&](int64_t begin, int64_t end) {
        for (int64_t b = begin; b < end; ++b) {
          const int64_t first = b * column_block;
          block_gradients(rows, columns, std::min(column_block, columns - first), dy + first,
                          x + first, mean, rstd, dgamma + first, dbeta ? dbeta + first : nullptr);
        }
      });
}

void forward(Stream&, In x, NormWeights weights, NormOutputs out) {
  with_type(x.dtype, layernorm_forward.name(), [&]<typename T>() {
    const int64_t columns = columns_of(x);
    with_forward<T>(weights, out, [&](const auto& norm) {
      at::parallel_for(0, rows_of(x), grain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i)
          norm(i, columns, x.as<T>() + i * columns, out.y.as<T>() + i * columns);
      });
    });
  });
}

void residual_then_forward(Stream&, ResidualSum sum, NormWeights weights, Out r, NormOutputs out) {
  const In& x = sum.x;
  with_type(x.dtype, residual_layernorm_forward.name(), [&]<typename T>() {
    using A = accumulate_t<T>;
    const int64_t columns = columns_of(x);
    const double dropout = sum.mask.probability;
    const auto add_row = [&](int64_t first, std::vector<A>& mask) {
      if (dropout > 0)
        draw_mask(dropout, sum.mask.seed.get(), static_cast<uint64_t>(first), columns, mask.data());
      const T* a = x.as<T>() + first;
      const T* d = sum.delta.as<T>() + first;
      T* to = r.as<T>() + first;
      for (int64_t j = 0; j < columns; ++j)
        to[j] = static_cast<T>(static_cast<A>(a[j]) + static_cast<A>(d[j]) * mask[j]);
      return to;
    };
    with_forward<T>(weights, out, [&](const auto& norm) {
      at::parallel_for(0, rows_of(x), grain, [&](int64_t begin, int64_t end) {
        std::vector<A> mask(static_cast<size_t>(columns), A(1));
        for (int64_t i = begin; i < end; ++i)
          norm(i, columns, add_row(i * columns, mask), out.y.as<T>() + i * columns);
      });
    });
  });
}

void backward(Stream&, const NormOperands& in, const NormGradients& out) {
  with_type(in.x.dtype, layernorm_backward.name(), [&]<typename T>() {
    using A = accumulate_t<T>;
    const int64_t rows = rows_of(in.x), columns = columns_of(in.x);
    const T *dy = in.dy.as<T>(), *x = in.x.as<T>();
    const A *mean = in.mean.as<A>(), *rstd = in.rstd.as<A>();
    // This comes first, because dx may be dy's memory.
    parameter_gradients<T>(rows, columns, dy, x, mean, rstd, out.dgamma.as<A>(), out.dbeta.as<A>());
    const auto run = [&](const auto& row) {
      at::parallel_for(0, rows, grain, [&](int64_t begin, int64_t end) {
        std::vector<A> scratch(static_cast<size_t>(2 * columns));
        for (int64_t i = begin; i < end; ++i)
          row(i, columns, dy + i * columns, x + i * columns, mean ? mean[i] : A(0), rstd[i],
              scratch.data());
      });
    };
    const auto with = [&](auto centered) {
      run(Backward<T, decltype(centered)::value>{in.gamma.as<T>(), in.residual_grad.as<T>(),
                                                 out.dx.as<T>(), out.ddelta.as<T>(),
                                                 out.mask.probability, out.mask.seed.get()});
    };
    out.dbeta.defined() ? with(std::true_type{}) : with(std::false_type{});
    if (!out.dbias.defined()) return;
    const Out& delta_gradient = out.ddelta.defined() ? out.ddelta : out.dx;
    add_column_sums(delta_gradient.as<T>(), rows, columns, columns, out.dbias.as<A>());
  });
}

const OnCpu versions[] = {{layernorm_forward, forward},
                          {residual_layernorm_forward, residual_then_forward},
                          {layernorm_backward, backward}};

}  // namespace
}  // namespace tally::train::cpu
