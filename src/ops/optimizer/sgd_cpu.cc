#include <algorithm>

#include "src/device/cpu/types.h"
#include "src/device/cpu/vector_math.h"
#include "src/ops/optimizer/optimizer.h"

namespace tally::train::cpu {
namespace {

constexpr int64_t elements_of_a_thread = 8192;

template <typename A>
struct SgdCoefficients {
  A rate, decay, clip, momentum;
};

// `out` is the weights in their own type, or null where the master weights are the weights.
template <typename A, typename W>
TALLY_CLONES void update(int64_t n, const SgdCoefficients<A>& c, const A* __restrict g,
                         A* __restrict w, A* __restrict m, W* __restrict out) {
  for (int64_t i = 0; i < n; ++i) {
    m[i] = c.momentum * m[i] + (c.clip * g[i] + c.decay * w[i]);
    w[i] -= c.rate * m[i];
  }
  if (out)
    for (int64_t i = 0; i < n; ++i) out[i] = static_cast<W>(w[i]);
}

void step(Stream&, double momentum, const StepState* state, const FlatUpdate& u) {
  const bool skip = state->found_inf != 0;
  with_type(u.weights.dtype, sgd_step.name(), [&]<typename W>() {
    using A = accumulate_t<W>;
    const auto range = [&](int64_t first, int64_t last, double decay) {
      const SgdCoefficients<A> c{static_cast<A>(state->learning_rate), static_cast<A>(decay),
                                 static_cast<A>(state->clip_factor), static_cast<A>(momentum)};
      at::parallel_for(first, last, elements_of_a_thread, [&](int64_t begin, int64_t end) {
        A* const g = u.gradients.as<A>() + begin;
        W* const out = u.weights.data == u.master.data ? nullptr : u.weights.as<W>() + begin;
        if (!skip) update(end - begin, c, g, u.master.as<A>() + begin, u.m.as<A>() + begin, out);
        if (u.zero_gradients) std::fill(g, g + (end - begin), A(0));
      });
    };
    range(0, u.decayed, state->weight_decay);
    range(u.decayed, u.gradients.numel(), 0);
  });
}

const OnCpu version(sgd_step, step);

}  // namespace
}  // namespace tally::train::cpu
