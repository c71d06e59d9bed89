#include "src/ops/graph.h"

#include "src/ops/linear.h"
#include "src/ops/norm.h"
#include "tests/train/cuda/both.h"

namespace tally::train {
namespace {

TEST_CASE("cuda: a recorded step does what the called one does, and allocates nothing" *
          NEEDS_GPU) {
  const Kind kind{DType::bf16, MatmulMode::ieee, "bf16", 1e-2};
  Both b(kind);
  const Pair x = b.input({64, 128}), w = b.input({128, 128}, 0.1), bias = b.input({128});
  const Pair gamma = b.input({128}), beta = b.input({128});
  const Pair pre = b.output({64, 128}), y = b.output({64, 128}), z = b.output({64, 128});
  const Pair mean = b.statistics({64}), rstd = b.statistics({64});
  const auto step = [&] {
    linear_gelu_forward(*b.gpu, x.gpu, w.gpu, bias.gpu, pre.gpu, y.gpu);
    layernorm_forward(*b.gpu, y.gpu, gamma.gpu, beta.gpu, 1e-5, z.gpu, mean.gpu, rstd.gpu);
  };
  const auto graph = StepGraph::make(*b.gpu);
  CHECK(graph->records());
  graph->run(step);
  const std::vector<double> called = Both::read(z.gpu, *b.gpu);
  graph->run(step);
  const int64_t allocations = b.gpu->allocations();
  for (int turn = 0; turn < 3; ++turn) {
    Both::write(z.gpu, *b.gpu, std::vector<double>(64 * 128, std::nan("")));
    graph->run(step);
    CHECK(Both::read(z.gpu, *b.gpu) == called);
  }
  CHECK(b.gpu->allocations() == allocations);
  // New numbers in the same memory.
  Both::write(x.gpu, *b.gpu, std::vector<double>(64 * 128, 0.5));
  graph->run(step);
  CHECK(Both::read(z.gpu, *b.gpu) != called);
}

}  // namespace
}  // namespace tally::train
