#include <vector>

#include "src/device/cpu/types.h"
#include "src/ops/norm/backends.h"

namespace tally::train::cpu {
namespace {

constexpr int64_t grain = 4096;

// Calls work(i, factor of the mask) for all elements.
template <typename A, typename Work>
void masked(int64_t count, double dropout, DropoutSeed seed, const Work& work) {
  at::parallel_for(0, count, grain, [&](int64_t begin, int64_t end) {
    std::vector<A> mask(static_cast<size_t>(end - begin), A(1));
    if (dropout > 0)
      draw_mask(dropout, seed.get(), static_cast<uint64_t>(begin), end - begin, mask.data());
    for (int64_t i = begin; i < end; ++i) work(i, mask[static_cast<size_t>(i - begin)]);
  });
}

}  // namespace

void residual_forward(Stream&, const Tensor& x, const Tensor& delta, double dropout,
                      DropoutSeed seed, const Tensor& r) {
  with_type(x.dtype, "residual_forward", [&]<typename T>() {
    using A = accumulate_t<T>;
    masked<A>(x.numel(), dropout, seed, [&](int64_t i, A factor) {
      r.as<T>()[i] =
          static_cast<T>(static_cast<A>(x.as<T>()[i]) + static_cast<A>(delta.as<T>()[i]) * factor);
    });
  });
}

void apply_dropout(Stream&, const Tensor& x, double dropout, DropoutSeed seed, const Tensor& y) {
  with_type(x.dtype, "apply_dropout", [&]<typename T>() {
    using A = accumulate_t<T>;
    masked<A>(x.numel(), dropout, seed, [&](int64_t i, A factor) {
      y.as<T>()[i] = static_cast<T>(static_cast<A>(x.as<T>()[i]) * factor);
    });
  });
}

}  // namespace tally::train::cpu
