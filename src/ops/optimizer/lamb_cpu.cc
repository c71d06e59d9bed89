#include <algorithm>
#include <cmath>

#include "src/device/cpu/types.h"
#include "src/device/cpu/vector_math.h"
#include "src/ops/optimizer/optimizer.h"

namespace tally::train::cpu {
namespace {

template <typename A>
struct LambCoefficients {
  A beta1, rest1, beta2, rest2, clip, correction1, correction2, epsilon, decay;
};

template <typename A>
TALLY_CLONES void directions(int64_t n, const LambCoefficients<A>& c, A* __restrict g,
                             const A* __restrict w, A* __restrict m, A* __restrict v) {
  for (int64_t i = 0; i < n; ++i) {
    const A gradient = g[i] * c.clip;
    m[i] = c.beta1 * m[i] + c.rest1 * gradient;
    v[i] = c.beta2 * v[i] + c.rest2 * gradient * gradient;
    g[i] = m[i] / c.correction1 / (std::sqrt(v[i] / c.correction2) + c.epsilon) + c.decay * w[i];
  }
}

template <typename A>
TALLY_CLONES double sum_of_squares(const A* x, int64_t n) {
  return sum_in_lanes(n, [x](int64_t i) {
    const double value = static_cast<double>(x[i]);
    return value * value;
  });
}

template <typename A, typename W>
TALLY_CLONES void update(int64_t n, A rate, const A* __restrict u, A* __restrict w,
                         W* __restrict out) {
  for (int64_t i = 0; i < n; ++i) w[i] -= rate * u[i];
  if (out)
    for (int64_t i = 0; i < n; ++i) out[i] = static_cast<W>(w[i]);
}

double trust_ratio(const StepState& state, const LambTables& tables, const LambPiece& piece) {
  if (piece.norm < 0 || state.weight_decay == 0) return 1;
  const double* sums = tables.norms.as<double>() + int64_t{2} * piece.norm;
  return sums[0] > 0 && sums[1] > 0 ? std::sqrt(sums[0]) / std::sqrt(sums[1]) : 1;
}

void direction(Stream&, const AdamW& hyper, const StepState* state, const LambBuffers& buffers,
               const LambTables& tables) {
  if (state->found_inf != 0) return;
  double* const sums = tables.piece_sums.as<double>();
  with_type(buffers.master.dtype, lamb_direction.name(), [&]<typename A>() {
    const auto as = [](double x) { return static_cast<A>(x); };
    at::parallel_for(0, tables.count, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const LambPiece& p = tables.pieces[i];
        const LambCoefficients<A> c{as(hyper.beta1),
                                    as(1 - hyper.beta1),
                                    as(hyper.beta2),
                                    as(1 - hyper.beta2),
                                    as(state->clip_factor),
                                    as(state->bias_correction1),
                                    as(state->bias_correction2),
                                    as(hyper.epsilon),
                                    as(p.norm < 0 ? 0 : state->weight_decay)};
        A* const u = static_cast<A*>(p.gradient);
        const A* const w = buffers.master.as<A>() + p.state;
        directions(p.count, c, u, w, buffers.m.as<A>() + p.state, buffers.v.as<A>() + p.state);
        if (p.norm < 0) continue;
        sums[2 * i] = sum_of_squares(w, p.count);
        sums[2 * i + 1] = sum_of_squares(u, p.count);
      }
    });
  });
  double* const norms = tables.norms.as<double>();
  for (int64_t row = 0; row < tables.norms.shape[0]; ++row) {
    norms[2 * row] = norms[2 * row + 1] = 0;
    for (int64_t i = tables.first_piece[row]; i < tables.first_piece[row + 1]; ++i) {
      norms[2 * row] += sums[2 * i];
      norms[2 * row + 1] += sums[2 * i + 1];
    }
  }
}

void step(Stream&, const StepState* state, const LambBuffers& buffers, const LambTables& tables,
          bool zero_gradients) {
  const bool skip = state->found_inf != 0;
  with_type(buffers.weights.dtype, lamb_step.name(), [&]<typename W>() {
    using A = accumulate_t<W>;
    const bool separate = buffers.weights.data != buffers.master.data;
    at::parallel_for(0, tables.count, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const LambPiece& p = tables.pieces[i];
        A* const u = static_cast<A*>(p.gradient);
        const A rate = static_cast<A>(state->learning_rate * trust_ratio(*state, tables, p));
        W* const out = separate ? buffers.weights.as<W>() + p.weight : nullptr;
        if (!skip) update(p.count, rate, u, buffers.master.as<A>() + p.state, out);
        if (zero_gradients) std::fill(u, u + p.count, A(0));
      }
    });
  });
}

const OnCpu versions[] = {{lamb_direction, direction}, {lamb_step, step}};

}  // namespace
}  // namespace tally::train::cpu
