#include <algorithm>
#include <cmath>

#include "src/device/cpu/types.h"
#include "src/device/cpu/vector_math.h"
#include "src/ops/optimizer/backends.h"

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

}  // namespace

namespace {

double squares(const Tensor& gradients, const Tensor& workspace) {
  const int64_t n = gradients.numel(), blocks = norm_blocks(n);
  double* partial = workspace.as<double>();
  with_type(gradients.dtype, "gradient_norm", [&]<typename G>() {
    const G* g = gradients.as<G>();
    at::parallel_for(0, blocks, 1, [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b) {
        const int64_t first = b * norm_block, last = std::min(n, first + norm_block);
        partial[b] = sum_of_squares(g + first, last - first);
      }
    });
  });
  double sum = 0;
  for (int64_t b = 0; b < blocks; ++b) sum += partial[b];
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

}  // namespace

void gradient_norm(Stream&, const Tensor& gradients, StepState* state, const Tensor& workspace) {
  norm_of(squares(gradients, workspace), state);
}

void add_gradient_squares(Stream&, const Tensor& gradients, StepState* state,
                          const Tensor& workspace) {
  state->gradient_squares += squares(gradients, workspace);
}

void finish_gradient_norm(Stream&, StepState* state) {
  norm_of(state->gradient_squares, state);
}

size_t norm_workspace(Stream&, int64_t elements) {
  return static_cast<size_t>(norm_blocks(elements)) * sizeof(double);
}

void adamw_step(Stream&, const AdamW& hyper, const StepState* state, int64_t decayed,
                const Tensor& gradients, const Tensor& master, const Tensor& m, const Tensor& v,
                const Tensor& weights, bool zero_gradients, int /*sms*/) {
  const int64_t n = gradients.numel();
  const bool skip = state->found_inf != 0;
  with_type(weights.dtype, "adamw_step", [&]<typename W>() {
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
        if (!skip) {
          W* const out = weights.data == master.data ? nullptr : weights.as<W>() + begin;
          update(end - begin, c, gradients.as<A>() + begin, master.as<A>() + begin,
                 m.as<A>() + begin, v.as<A>() + begin, out, zero_gradients);
        } else if (zero_gradients) {
          std::fill(gradients.as<A>() + begin, gradients.as<A>() + end, A(0));
        }
      });
    };
    range(0, decayed, state->weight_decay);
    range(decayed, n, 0);
  });
}

}  // namespace tally::train::cpu
