// Ranks that take over what another one's autotuning has chosen.
#include "src/ops/tuned.h"

#include <sstream>

#include "src/ops/gemm/gemm.h"
#include "src/ops/linear/linear.h"
#include "tests/train/cuda/both.h"

namespace tally::train {
namespace {

void run_linear(Both& b) {
  const Pair x = b.input({512, 256}), w = b.input({384, 256}), y = b.output({512, 384});
  linear_forward(*b.cpu, x.cpu, w.cpu, Tensor(), y.cpu, Tensor());
  linear_forward(*b.gpu, x.gpu, w.gpu, Tensor(), y.gpu, Tensor());
  CHECK_CLOSE(b, y, 1e-2);
}

const Kind bf16{DType::bf16, MatmulMode::ieee, "bf16", 1e-2};

TEST_CASE("cuda: another rank's algorithms are taken over, and used" * NEEDS_GPU) {
  Both first(bf16);
  run_linear(first);
  const std::string chosen = tuned_algorithms(*first.gpu);
  REQUIRE(chosen.find("gemm ") != std::string::npos);
  // Adopting what is in use changes nothing.
  adopt_algorithms(*first.gpu, chosen);
  CHECK(tuned_algorithms(*first.gpu) == chosen);

  Both second(bf16);
  adopt_algorithms(*second.gpu, chosen);
  run_linear(second);
  const std::string used = tuned_algorithms(*second.gpu);
  std::istringstream lines(chosen);
  for (std::string line; std::getline(lines, line);) CHECK(used.find(line) != std::string::npos);
}

}  // namespace
}  // namespace tally::train
