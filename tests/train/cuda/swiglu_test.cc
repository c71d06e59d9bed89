#include "src/ops/swiglu/swiglu.h"

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
      swiglu_forward(*b.cpu, h.cpu, Out(y.cpu));
      swiglu_forward(*b.gpu, h.gpu, Out(y.gpu));
      CHECK_CLOSE(b, y, kind.tolerance);
      swiglu_backward(*b.cpu, dy.cpu, h.cpu, Out(dh.cpu));
      swiglu_backward(*b.gpu, dy.gpu, h.gpu, Out(dh.gpu));
      CHECK_CLOSE(b, dh, kind.tolerance);
      swiglu_backward(*b.cpu, dy.cpu, h.cpu, Out(h.cpu));
      swiglu_backward(*b.gpu, dy.gpu, h.gpu, Out(h.gpu));
      CHECK_CLOSE(b, h, kind.tolerance);
    }
  }
}

}  // namespace
}  // namespace tally::train
