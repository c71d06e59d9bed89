#include <vector>

#include "src/device/cpu/types.h"
#include "src/ops/norm/norm.h"

namespace tally::train::cpu {
namespace {

constexpr int64_t grain = 4096;

// Calls work(i, factor of the mask) for all elements.
template <typename A, typename Work>
void masked(int64_t count, const DropoutMask& mask, const Work& work) {
  at::parallel_for(0, count, grain, [&](int64_t begin, int64_t end) {
    std::vector<A> factors(static_cast<size_t>(end - begin), A(1));
    if (mask.probability > 0)
      draw_mask(mask.probability, mask.seed.get(), static_cast<uint64_t>(begin), end - begin,
                factors.data());
    for (int64_t i = begin; i < end; ++i) work(i, factors[static_cast<size_t>(i - begin)]);
  });
}

void add(Stream&, ResidualSum sum, Out r) {
  with_type(sum.x.dtype, residual_forward.name(), [&]<typename T>() {
    using A = accumulate_t<T>;
    const T *x = sum.x.as<T>(), *delta = sum.delta.as<T>();
    masked<A>(sum.x.numel(), sum.mask, [&](int64_t i, A factor) {
      r.as<T>()[i] = static_cast<T>(static_cast<A>(x[i]) + static_cast<A>(delta[i]) * factor);
    });
  });
}

void drop(Stream&, In x, DropoutMask mask, Out y) {
  with_type(x.dtype, apply_dropout.name(), [&]<typename T>() {
    using A = accumulate_t<T>;
    masked<A>(x.numel(), mask, [&](int64_t i, A factor) {
      y.as<T>()[i] = static_cast<T>(static_cast<A>(x.as<T>()[i]) * factor);
    });
  });
}

const OnCpu versions[] = {{residual_forward, add}, {apply_dropout, drop}};

}  // namespace
}  // namespace tally::train::cpu
