#include "src/ops/attention.h"

#include <cstdlib>

#include "tests/train/cuda/both.h"

namespace tally::train {
namespace {

AttentionShape shape_of(int64_t batch, int64_t tokens, int64_t heads, int64_t head_dim, bool causal,
                        double dropout) {
  return {batch,  tokens, heads, head_dim, causal, 1 / std::sqrt(static_cast<double>(head_dim)),
          dropout};
}

// Forward and backward against float64. Returns the back end that served.
std::string check(const Kind& kind, const AttentionShape& a, bool repeatable = false) {
  Both b(kind);
  b.gpu->deterministic = repeatable;
  const Pair qkv = b.input({a.batch, a.tokens, 3, a.heads, a.head_dim});
  const Pair out = b.output({a.batch, a.tokens, a.heads, a.head_dim});
  const Pair stats = b.statistics({a.batch, a.heads, a.tokens});
  const Pair dout = b.input({a.batch, a.tokens, a.heads, a.head_dim});
  const Pair dqkv = b.output({a.batch, a.tokens, 3, a.heads, a.head_dim});
  const Tensor work = b.scratch(attention_workspace(*b.gpu, a, kind.type));
  attention_forward(*b.cpu, a, qkv.cpu, out.cpu, stats.cpu, Tensor(), 11);
  attention_forward(*b.gpu, a, qkv.gpu, out.gpu, stats.gpu, work, 11);
  const std::string backend = attention_backend(*b.gpu, a, kind.type);
  INFO(backend, " B ", a.batch, " T ", a.tokens, " H ", a.heads, " D ", a.head_dim, " causal ",
       a.causal, " dropout ", a.dropout);
  CHECK_CLOSE(b, out, kind.tolerance);
  CHECK_CLOSE(b, stats,
              kind.mode == MatmulMode::tf32 ? 1e-3
              : kind.type == DType::f64     ? 1e-12
                                            : 1e-4);
  attention_backward(*b.cpu, a, qkv.cpu, out.cpu, stats.cpu, dout.cpu, dqkv.cpu, Tensor(), 11);
  attention_backward(*b.gpu, a, qkv.gpu, out.gpu, stats.gpu, dout.gpu, dqkv.gpu, work, 11);
  // Four products in a row.
  CHECK_CLOSE(b, dqkv, kind.type == DType::f64 ? 1e-11 : 2 * kind.tolerance);
  return backend;
}

TEST_CASE("cuda: attention, every type, mask and odd size" * NEEDS_GPU) {
  for (const Kind& kind : kinds()) {
    for (const bool causal : {true, false}) {
      check(kind, shape_of(2, 64, 3, 16, causal, 0));
      check(kind, shape_of(5, 33, 2, 17, causal, 0));  // more batch than heads; no cuDNN
      check(kind, shape_of(1, 200, 2, 40, causal, 0));
    }
    check(kind, shape_of(1, 1, 1, 8, true, 0));
  }
}

TEST_CASE("cuda: attention's dropout takes the CPU's mask in our kernels" * NEEDS_GPU) {
  for (const Kind& kind : kinds()) {
    if (size_of(kind.type) == 2) continue;  // cuDNN draws its own
    check(kind, shape_of(2, 48, 3, 16, true, 0.3));
    check(kind, shape_of(3, 20, 2, 12, false, 0.3));
  }
}

TEST_CASE("cuda: attention at GPT-2's head sizes" * NEEDS_GPU) {
  for (const Kind& kind : kinds()) {
    if (size_of(kind.type) != 2) continue;
    for (const int64_t head_dim : {64, 80, 96, 128}) {
      for (const bool repeatable : {false, true}) {
        const std::string backend = check(kind, shape_of(2, 256, 2, head_dim, true, 0), repeatable);
        WARN(backend == "cudnn");
      }
    }
    check(kind, shape_of(1, 160, 2, 160, true, 0));
    check(kind, shape_of(1, 100, 3, 64, true, 0));
  }
}

TEST_CASE("cuda: our attention serves 16-bit types too" * NEEDS_GPU) {
  setenv("TALLY_ATTENTION", "own", 1);
  for (const Kind& kind : kinds()) {
    if (size_of(kind.type) != 2) continue;
    CHECK(check(kind, shape_of(2, 128, 4, 64, true, 0)) == "own");
    CHECK(check(kind, shape_of(2, 128, 4, 64, true, 0.1)) == "own");
  }
  unsetenv("TALLY_ATTENTION");
}

// out is linear in V for a fixed mask, so <dout, out> = <dV, V>, but only where the backward pass
// draws the mask of the forward pass.
TEST_CASE("cuda: attention's dropout is the same mask forward and backward" * NEEDS_GPU) {
  const Kind kind{DType::bf16, MatmulMode::ieee, "bf16", 1e-2};
  const AttentionShape a = shape_of(2, 256, 4, 64, true, 0.4);
  Both b(kind);
  const Pair qkv = b.input({a.batch, a.tokens, 3, a.heads, a.head_dim});
  const Pair out = b.output({a.batch, a.tokens, a.heads, a.head_dim}),
             other = b.output({a.batch, a.tokens, a.heads, a.head_dim});
  const Pair stats = b.statistics({a.batch, a.heads, a.tokens});
  const Pair dqkv = b.output({a.batch, a.tokens, 3, a.heads, a.head_dim});
  const Tensor work = b.scratch(attention_workspace(*b.gpu, a, kind.type));
  attention_forward(*b.gpu, a, qkv.gpu, other.gpu, stats.gpu, work, 12);
  attention_forward(*b.gpu, a, qkv.gpu, out.gpu, stats.gpu, work, 11);
  CHECK(Both::read(out.gpu, *b.gpu) != Both::read(other.gpu, *b.gpu));
  // dout = out makes <dout, out> large against rounding.
  attention_backward(*b.gpu, a, qkv.gpu, out.gpu, stats.gpu, out.gpu, dqkv.gpu, work, 11);
  const std::vector<double> o = Both::read(out.gpu, *b.gpu), x = Both::read(qkv.gpu, *b.gpu),
                            g = Both::read(dqkv.gpu, *b.gpu);
  double left = 0, right = 0;
  for (const double v : o) left += v * v;
  const auto row = static_cast<size_t>(a.heads * a.head_dim);
  for (size_t i = 0; i < x.size(); ++i) {
    if (i / row % 3 == 2) right += x[i] * g[i];
  }
  CHECK(right == doctest::Approx(left).epsilon(1e-2));
}

TEST_CASE("cuda: rotary, and back" * NEEDS_GPU) {
  for (const Kind& kind : kinds()) {
    for (const double fraction : {1.0, 0.5}) {
      Both b(kind);
      const Pair qkv = b.input({2, 70, 3, 5, 24});
      rotary(*b.cpu, qkv.cpu, 10000, fraction, false);
      rotary(*b.gpu, qkv.gpu, 10000, fraction, false);
      CHECK_CLOSE(b, qkv, kind.tolerance);
      rotary(*b.cpu, qkv.cpu, 10000, fraction, true);
      rotary(*b.gpu, qkv.gpu, 10000, fraction, true);
      CHECK_CLOSE(b, qkv, kind.tolerance);
    }
  }
}

}  // namespace
}  // namespace tally::train
