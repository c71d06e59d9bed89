#include "src/device/cpu/types.h"
#include "src/device/cpu/vector_math.h"
#include "src/ops/fp8/fp8.h"
#include "src/ops/swiglu/swiglu.h"

namespace tally::train::cpu {
namespace {

// Rows a thread takes at least, so that small inputs stay on one.
constexpr int64_t grain = 16;

template <typename T>
TALLY_CLONES void forward_row(const T* gate, const T* up, int64_t n, T* y) {
  using A = accumulate_t<T>;
  for (int64_t i = 0; i < n; ++i) {
    const A v = static_cast<A>(gate[i]);
    y[i] = static_cast<T>(v / (1 + exponential(-v)) * static_cast<A>(up[i]));
  }
}

template <typename T>
TALLY_CLONES void backward_row(const T* dy, const T* gate, const T* up, int64_t n, T* dgate,
                               T* dup) {
  using A = accumulate_t<T>;
  for (int64_t i = 0; i < n; ++i) {
    const A v = static_cast<A>(gate[i]), u = static_cast<A>(up[i]), g = static_cast<A>(dy[i]);
    const A s = 1 / (1 + exponential(-v));
    dgate[i] = static_cast<T>(g * u * s * (1 + v * (1 - s)));
    dup[i] = static_cast<T>(g * v * s);
  }
}

void forward(Stream& s, In h, Out y, Out amax) {
  with_type(h.dtype, swiglu_forward.name(), [&]<typename T>() {
    const int64_t n = columns_of(y);
    at::parallel_for(0, rows_of(y), grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const T* const row = h.as<T>() + i * 2 * n;
        forward_row(row, row + n, n, y.as<T>() + i * n);
      }
    });
  });
  if (amax.defined()) fp8_amax(s, y, amax);
}

void backward(Stream& s, In dy, In h, Out dh, Out amax) {
  with_type(h.dtype, swiglu_backward.name(), [&]<typename T>() {
    const int64_t n = columns_of(dy);
    at::parallel_for(0, rows_of(dy), grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const T* const row = h.as<T>() + i * 2 * n;
        T* const out = dh.as<T>() + i * 2 * n;
        backward_row(dy.as<T>() + i * n, row, row + n, n, out, out + n);
      }
    });
  });
  if (amax.defined()) fp8_amax(s, dh, amax);
}

const OnCpu versions[] = {{swiglu_forward, forward}, {swiglu_backward, backward}};

}  // namespace
}  // namespace tally::train::cpu
