#include <algorithm>
#include <cmath>
#include <vector>

#include "src/device/cpu/types.h"
#include "src/device/cpu/vector_math.h"
#include "src/ops/norm/backends.h"

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
void with_forward(const Tensor& gamma, const Tensor& beta, double epsilon, const Tensor& mean,
                  const Tensor& rstd, const Work& work) {
  using A = accumulate_t<T>;
  if (beta.defined())
    return work(Forward<T, true>{gamma.as<T>(), beta.as<T>(), epsilon, mean.as<A>(), rstd.as<A>()});
  work(Forward<T, false>{gamma.as<T>(), nullptr, epsilon, nullptr, rstd.as<A>()});
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

  // `scratch`: two rows. dx = rstd (g - mean(g) - n mean(g n)) with n the normalised row and g = dy gamma.
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

// Of `n` columns, at most a block.
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

}  // namespace

void layernorm_forward(Stream&, const Tensor& x, const Tensor& gamma, const Tensor& beta,
                       double epsilon, const Tensor& y, const Tensor& mean, const Tensor& rstd) {
  with_type(x.dtype, "layernorm_forward", [&]<typename T>() {
    const int64_t columns = columns_of(x);
    with_forward<T>(gamma, beta, epsilon, mean, rstd, [&](const auto& forward) {
      at::parallel_for(0, rows_of(x), grain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i)
          forward(i, columns, x.as<T>() + i * columns, y.as<T>() + i * columns);
      });
    });
  });
}

void residual_layernorm_forward(Stream&, const Tensor& x, const Tensor& delta, const Tensor& gamma,
                                const Tensor& beta, double epsilon, double dropout,
                                DropoutSeed seed, const Tensor& r, const Tensor& y,
                                const Tensor& mean, const Tensor& rstd) {
  with_type(x.dtype, "residual_layernorm_forward", [&]<typename T>() {
    using A = accumulate_t<T>;
    const int64_t columns = columns_of(x);
    const auto add_row = [&](int64_t first, std::vector<A>& mask) {
      if (dropout > 0)
        draw_mask(dropout, seed.get(), static_cast<uint64_t>(first), columns, mask.data());
      const T* a = x.as<T>() + first;
      const T* d = delta.as<T>() + first;
      T* sum = r.as<T>() + first;
      for (int64_t j = 0; j < columns; ++j)
        sum[j] = static_cast<T>(static_cast<A>(a[j]) + static_cast<A>(d[j]) * mask[j]);
      return sum;
    };
    with_forward<T>(gamma, beta, epsilon, mean, rstd, [&](const auto& forward) {
      at::parallel_for(0, rows_of(x), grain, [&](int64_t begin, int64_t end) {
        std::vector<A> mask(static_cast<size_t>(columns), A(1));
        for (int64_t i = begin; i < end; ++i)
          forward(i, columns, add_row(i * columns, mask), y.as<T>() + i * columns);
      });
    });
  });
}

void layernorm_backward(Stream&, const Tensor& dy, const Tensor& x, const Tensor& gamma,
                        const Tensor& mean, const Tensor& rstd, const Tensor& residual_grad,
                        const Tensor& dx, const Tensor& dgamma, const Tensor& dbeta, double dropout,
                        DropoutSeed seed, const Tensor& ddelta, const Tensor&,
                        const Tensor& dbias) {
  with_type(x.dtype, "layernorm_backward", [&]<typename T>() {
    using A = accumulate_t<T>;
    const int64_t rows = rows_of(x), columns = columns_of(x);
    // This comes first, because dx may be dy's memory.
    parameter_gradients<T>(rows, columns, dy.as<T>(), x.as<T>(), mean.as<A>(), rstd.as<A>(),
                           dgamma.as<A>(), dbeta.as<A>());
    const auto run = [&](const auto& backward) {
      at::parallel_for(0, rows, grain, [&](int64_t begin, int64_t end) {
        std::vector<A> scratch(static_cast<size_t>(2 * columns));
        for (int64_t i = begin; i < end; ++i)
          backward(i, columns, dy.as<T>() + i * columns, x.as<T>() + i * columns,
                   mean.defined() ? mean.as<A>()[i] : A(0), rstd.as<A>()[i], scratch.data());
      });
    };
    if (dbeta.defined()) {
      run(Backward<T, true>{gamma.as<T>(), residual_grad.as<T>(), dx.as<T>(), ddelta.as<T>(),
                            dropout, seed.get()});
    } else {
      run(Backward<T, false>{gamma.as<T>(), residual_grad.as<T>(), dx.as<T>(), ddelta.as<T>(),
                             dropout, seed.get()});
    }
    if (!dbias.defined()) return;
    const Tensor& delta_gradient = ddelta.defined() ? ddelta : dx;
    add_column_sums(delta_gradient.as<T>(), rows, columns, columns, dbias.as<A>());
  });
}

size_t layernorm_workspace(Stream&, int64_t, int64_t) {
  return 0;
}

}  // namespace tally::train::cpu
