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
  linear_forward(*b.cpu, x.cpu, {w.cpu}, Out(y.cpu), {});
  linear_forward(*b.gpu, x.gpu, {w.gpu}, Out(y.gpu), {});
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

// All GEMMs of a layer with so many tokens, each held against float64.
void run_layer(Both& b, int64_t tokens) {
  const Pair x = b.input({tokens, 256}), w = b.input({512, 256}), bias = b.input({512});
  const Pair y = b.output({tokens, 512}), dy = b.input({tokens, 512});
  const Pair dx = b.output({tokens, 256}), dw = b.sum({512, 256});
  linear_forward(*b.cpu, x.cpu, {w.cpu, bias.cpu}, Out(y.cpu), {});
  linear_forward(*b.gpu, x.gpu, {w.gpu, bias.gpu}, Out(y.gpu), {});
  CHECK_CLOSE(b, y, 1e-2);
  linear_backward_input(*b.cpu, dy.cpu, w.cpu, Out(dx.cpu), {});
  linear_backward_input(*b.gpu, dy.gpu, w.gpu, Out(dx.gpu), {});
  CHECK_CLOSE(b, dx, 1e-2);
  linear_backward_weight(*b.cpu, dy.cpu, x.cpu, {Out(dw.cpu)});
  linear_backward_weight(*b.gpu, dy.gpu, x.gpu, {Out(dw.gpu)});
  CHECK_CLOSE(b, dw, 1e-2);
}

TEST_CASE("cuda: numbers of tokens that are nearly the same share what is tuned" * NEEDS_GPU) {
  Both b(bf16);
  b.gpu.options.tokens_vary = true;
  run_layer(b, 1000);
  const std::string chosen = tuned_algorithms(*b.gpu);
  for (const int64_t tokens : {1024, 961, 1001}) run_layer(b, tokens);
  CHECK(tuned_algorithms(*b.gpu) == chosen);
  run_layer(b, 768);
  CHECK(tuned_algorithms(*b.gpu) != chosen);
}

TEST_CASE("cuda: sizes under which GEMMs are tuned") {
  ComputeOptions options;
  CHECK(cuda::tuned_size(options, 1001) == 1001);
  options.tokens_vary = true;
  CHECK(cuda::tuned_size(options, 15) == 15);
  CHECK(cuda::tuned_size(options, 17) == 24);
  CHECK(cuda::tuned_size(options, 768) == 768);
  CHECK(cuda::tuned_size(options, 961) == 1024);
  CHECK(cuda::tuned_size(options, 1025) == 1536);
}

}  // namespace
}  // namespace tally::train
