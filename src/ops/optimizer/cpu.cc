#include <algorithm>
#include <cmath>
#include <vector>

#include "src/device/cpu/types.h"
#include "src/device/cpu/vector_math.h"
#include "src/ops/optimizer/optimizer.h"

namespace tally::train::cpu {
namespace {

// Elements whose squares make one partial sum, independent of the number of threads.
constexpr int64_t norm_block = 8192;

int64_t norm_blocks(int64_t elements) {
  return (elements + norm_block - 1) / norm_block;
}

template <typename G>
TALLY_CLONES double sum_of_squares(const G* g, int64_t n) {
  return sum_in_lanes(n, [g](int64_t i) {
    const double x = static_cast<double>(g[i]);
    return x * x;
  });
}

struct Coefficients {
  double beta1, beta2, epsilon, rate, decay, correction1, correction2, clip_factor;
};

// `out` is the weights in their own type, or null where the master weights are the weights.
template <typename A, typename W>
TALLY_CLONES void update(int64_t n, const Coefficients& c, A* __restrict g, A* __restrict w,
                         A* __restrict m, A* __restrict v, W* __restrict out, bool zero) {
  const A beta1 = static_cast<A>(c.beta1), beta2 = static_cast<A>(c.beta2);
  const A one_minus1 = static_cast<A>(1 - c.beta1), one_minus2 = static_cast<A>(1 - c.beta2);
  const A keep = static_cast<A>(1 - c.rate * c.decay), clip = static_cast<A>(c.clip_factor);
  const A step = static_cast<A>(c.rate / c.correction1);
  const A root = static_cast<A>(std::sqrt(c.correction2)), epsilon = static_cast<A>(c.epsilon);
  for (int64_t i = 0; i < n; ++i) {
    const A gradient = g[i] * clip;
    m[i] = beta1 * m[i] + one_minus1 * gradient;
    v[i] = beta2 * v[i] + one_minus2 * gradient * gradient;
    w[i] = w[i] * keep - step * m[i] / (std::sqrt(v[i]) / root + epsilon);
  }
  if (out)
    for (int64_t i = 0; i < n; ++i) out[i] = static_cast<W>(w[i]);
  if (zero) std::fill(g, g + n, A(0));
}

double squares(const In& gradients) {
  const int64_t n = gradients.numel(), blocks = norm_blocks(n);
  std::vector<double> partial(static_cast<size_t>(blocks));
  with_type(gradients.dtype, gradient_norm.name(), [&]<typename G>() {
    const G* g = gradients.as<G>();
    at::parallel_for(0, blocks, 1, [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b) {
        const int64_t first = b * norm_block, last = std::min(n, first + norm_block);
        partial[static_cast<size_t>(b)] = sum_of_squares(g + first, last - first);
      }
    });
  });
  double sum = 0;
  for (const double part : partial) sum += part;
  return sum;
}

void norm_of(double sum, StepState* state) {
  const double norm = std::sqrt(sum) / static_cast<double>(state->loss_scale);
  state->found_inf = std::isfinite(norm) ? 0.0F : 1.0F;
  state->grad_norm = static_cast<float>(norm);
  const double clip = state->clip > 0 ? std::min(1.0, state->clip / (norm + 1e-6)) : 1.0;
  state->clip_factor = clip / static_cast<double>(state->loss_scale);
  update_dynamic_scale(state);
}

void norm(Stream&, In gradients, StepState* state) {
  norm_of(squares(gradients), state);
}

void add_squares(Stream&, In gradients, StepState* state) {
  state->gradient_squares += squares(gradients);
}

void finish_norm(Stream&, StepState* state) {
  norm_of(state->gradient_squares, state);
}

void add(Stream&, In from, Out to) {
  with_type(to.dtype, add_gradients.name(), [&]<typename G>() {
    const G* source = from.as<G>();
    G* sums = to.as<G>();
    at::parallel_for(0, to.numel(), norm_block, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) sums[i] += source[i];
    });
  });
}

void adamw(Stream&, const AdamW& hyper, const StepState* state, const FlatUpdate& u, int /*sms*/) {
  const int64_t n = u.gradients.numel();
  const bool skip = state->found_inf != 0;
  with_type(u.weights.dtype, adamw_step.name(), [&]<typename W>() {
    using A = accumulate_t<W>;
    const auto range = [&](int64_t first, int64_t last, double decay) {
      const Coefficients c{hyper.beta1,
                           hyper.beta2,
                           hyper.epsilon,
                           state->learning_rate,
                           decay,
                           state->bias_correction1,
                           state->bias_correction2,
                           state->clip_factor};
      at::parallel_for(first, last, norm_block, [&](int64_t begin, int64_t end) {
        A* const g = u.gradients.as<A>();
        if (!skip) {
          W* const out = u.weights.data == u.master.data ? nullptr : u.weights.as<W>() + begin;
          update(end - begin, c, g + begin, u.master.as<A>() + begin, u.m.as<A>() + begin,
                 u.v.as<A>() + begin, out, u.zero_gradients);
        } else if (u.zero_gradients) {
          std::fill(g + begin, g + end, A(0));
        }
      });
    };
    range(0, u.decayed, state->weight_decay);
    range(u.decayed, n, 0);
  });
}

const OnCpu versions[] = {{gradient_norm, norm},
                          {add_gradient_squares, add_squares},
                          {finish_gradient_norm, finish_norm},
                          {add_gradients, add},
                          {adamw_step, adamw}};

}  // namespace
}  // namespace tally::train::cpu
