#include "src/ops/norm/head_norm.h"

#include "tests/train/cuda/both.h"

namespace tally::train {
namespace {

TEST_CASE("cuda: the norm of the heads of Q and K, forward and backward" * NEEDS_GPU) {
  for (const Kind& kind : types()) {
    for (const int64_t width : {int64_t{1}, int64_t{6}, int64_t{64}, int64_t{128}, int64_t{256}}) {
      Both b(kind);
      const int64_t batch = 2, tokens = 37, heads = 4, groups = 2, rows = batch * tokens;
      const Pair qkv = b.input({batch, tokens, heads + 2 * groups, width}, 3);
      const Pair dqkv = b.input({batch, tokens, heads + 2 * groups, width});
      const Pair q = b.input({width}), k = b.input({width});
      const Pair raw = b.output({rows, heads + groups, width});
      const Pair rstd = b.statistics({rows, heads + groups});
      const Pair dq = b.sum({width}), dk = b.sum({width});
      INFO("width ", width);
      const auto run = [&](const Compute& c, auto of) {
        Stream& s = c.stream;
        const HeadNormWeights weights{of(q), of(k), groups, 1e-5};
        const SavedHeads saved{Out(of(raw)), Out(of(rstd))};
        head_norm_forward(s, Out(of(qkv)), weights, saved);
        head_norm_backward(s, weights, saved, {Out(of(dqkv)), Out(of(dq)), Out(of(dk))});
      };
      run({*b.cpu, {}}, [](const Pair& p) { return p.cpu; });
      run(*b.gpu, [](const Pair& p) { return p.gpu; });
      CHECK_CLOSE(b, qkv, kind.tolerance);
      CHECK_CLOSE(b, dqkv, kind.tolerance);
      CHECK_CLOSE(b, dq, kind.tolerance);
      CHECK_CLOSE(b, dk, kind.tolerance);
    }
  }
}

}  // namespace
}  // namespace tally::train
