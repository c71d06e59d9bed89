#include "src/ops/swiglu/swiglu.h"

#include <cmath>
#include <vector>

#include "src/ops/fp8/fp8.h"
#include "tests/train/cuda/both.h"

namespace tally::train {
namespace {

TEST_CASE("cuda: swiglu, forward and backward" * NEEDS_GPU) {
  for (const Kind& kind : types()) {
    for (const int64_t columns : {int64_t{1}, int64_t{57}, int64_t{1024}, int64_t{8192}}) {
      Both b(kind);
      const int64_t rows = 77;
      const Pair h = b.input({rows, 2 * columns}, 3), dy = b.input({rows, columns});
      const Pair y = b.output({rows, columns}), dh = b.output({rows, 2 * columns});
      INFO("columns ", columns);
      swiglu_forward(*b.cpu, h.cpu, Out(y.cpu), {});
      swiglu_forward(*b.gpu, h.gpu, Out(y.gpu), {});
      CHECK_CLOSE(b, y, kind.tolerance);
      swiglu_backward(*b.cpu, dy.cpu, h.cpu, Out(dh.cpu), {});
      swiglu_backward(*b.gpu, dy.gpu, h.gpu, Out(dh.gpu), {});
      CHECK_CLOSE(b, dh, kind.tolerance);
      swiglu_backward(*b.cpu, dy.cpu, h.cpu, Out(h.cpu), {});
      swiglu_backward(*b.gpu, dy.gpu, h.gpu, Out(h.gpu), {});
      CHECK_CLOSE(b, h, kind.tolerance);
    }
  }
}

// What a pass of its own would find, in sizes of whole vectors and of one value a thread.
TEST_CASE("cuda: swiglu finds the largest magnitude of what it stores" * NEEDS_GPU) {
  for (const Kind& kind : types()) {
    if (kind.type == DType::f64) continue;
    for (const int64_t columns : {int64_t{57}, int64_t{1024}})
      for (const bool special : {false, true}) {
        Both b(kind);
        Stream& s = *b.gpu.stream;
        const Pair h = b.input({300, 2 * columns}, 3), dy = b.input({300, columns});
        const Pair y = b.output({300, columns}), dh = b.output({300, 2 * columns});
        const Pair found = b.put({1}, DType::f32, DType::f32, {7}),
                   want = b.put({1}, DType::f32, DType::f32, {});
        INFO(kind.name, " columns ", columns, " NaNs ", special);
        const std::vector<uint8_t> ones(h.gpu.rows(299, 1).bytes(), 0xff);  // NaNs
        if (special) s.copy(h.gpu.rows(299, 1).data, ones.data(), ones.size());
        const auto check = [&](const Tensor& result) {
          fp8_amax(s, result, Out(want.gpu));
          const double is = Both::read(found.gpu, s)[0], pass = Both::read(want.gpu, s)[0];
          CHECK((std::isnan(pass) ? std::isnan(is) : is == pass));
          CHECK(std::isnan(pass) == special);
        };
        swiglu_forward(s, h.gpu, Out(y.gpu), Out(found.gpu));
        check(y.gpu);
        swiglu_backward(s, dy.gpu, h.gpu, Out(dh.gpu), Out(found.gpu));
        check(dh.gpu);
      }
  }
}

}  // namespace
}  // namespace tally::train
