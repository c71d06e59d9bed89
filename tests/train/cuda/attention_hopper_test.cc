// Attention on Hopper's matrix instructions (src/ops/cuda/attention_hopper.h).
#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "tests/train/cuda/attention_check.h"

namespace tally::train {
namespace {

// Blocks of 128 queries and keys: one of each; a few; so many that every multiprocessor takes
// several from the queue, some of which have one turn only, some several.
TEST_CASE("cuda: attention on Hopper's matrix instructions" * NEEDS_GPU) {
  if (!on_hopper()) {
    MESSAGE("not run: no GPU of compute capability 9.0, or a build without kernels for it");
    return;
  }
  for (const Kind& kind : kinds()) {
    if (size_of(kind.type) != 2) continue;
    for (const bool causal : {true, false}) {
      for (const AttentionShape& a :
           {shape_of(1, 128, 1, 64, causal, 0), shape_of(2, 384, 3, 64, causal, 0),
            shape_of(12, 128, 30, 64, causal, 0), shape_of(7, 256, 30, 64, causal, 0),
            shape_of(3, 1024, 16, 64, causal, 0), shape_of(1, 2048, 1, 64, causal, 0)}) {
        CHECK(check(kind, a) == "hopper");
        if (a.tokens == 384) CHECK(check(kind, a, {.own_16_bits = false}) != "hopper");
      }
    }
    for (const AttentionShape& a :
         {shape_of(1, 192, 2, 64, true, 0), shape_of(1, 64, 2, 64, true, 0),
          shape_of(1, 128, 2, 32, true, 0)})
      CHECK(check(kind, a) != "hopper");
    CHECK(check(kind, shape_of(1, 128, 2, 64, true, 0), {.repeatable = true}) != "hopper");
  }
}

// Sums of all but dQ have a fixed order, so any difference between two launches is a race; those of
// dQ differ in their last bits only. Scores are large, so that probabilities are far from even, and
// the scratch holds what is not a number.
TEST_CASE("cuda: attention on Hopper is the same in each of many launches" * NEEDS_GPU) {
  if (!on_hopper()) return;
  for (const Kind& kind : kinds()) {
    if (size_of(kind.type) != 2) continue;
    AttentionShape a = shape_of(4, 1024, 12, 64, true, 0);
    a.scale = 0.2;
    Both b(kind);
    const Pair qkv = b.input({a.batch, a.tokens, 3, a.heads, a.head_dim}, 1.5);
    const Pair out = b.output({a.batch, a.tokens, a.heads, a.head_dim});
    const Pair stats = b.statistics({a.batch, a.heads, a.tokens});
    const Pair dout = b.input({a.batch, a.tokens, a.heads, a.head_dim});
    const Pair dqkv = b.output({a.batch, a.tokens, 3, a.heads, a.head_dim});
    const size_t bytes = attention_workspace(*b.gpu, a, kind.type);
    const Tensor work = b.scratch(bytes);
    const std::vector<char> ones(bytes, static_cast<char>(0xff));
    std::vector<double> first, first_out, first_stats;
    const auto row = static_cast<size_t>(a.heads * a.head_dim);
    for (int launch = 0; launch < 300; ++launch) {
      if (launch % 100 == 0) b.gpu->copy(work.data, ones.data(), bytes);
      attention_forward(*b.gpu, a, qkv.gpu, out.gpu, stats.gpu, work, 11);
      attention_backward(*b.gpu, a, qkv.gpu, out.gpu, stats.gpu, dout.gpu, dqkv.gpu, work, 11);
      if (launch % 10 != 0) continue;  // reading takes longer than the launch
      const std::vector<double> got = Both::read(dqkv.gpu, *b.gpu);
      if (first.empty()) {
        first = got;
        first_out = Both::read(out.gpu, *b.gpu);
        first_stats = Both::read(stats.gpu, *b.gpu);
      }
      size_t differ = 0;
      double most = 0, largest = 0;
      for (size_t i = 0; i < got.size(); ++i) {
        if (i / row % 3 != 0) differ += !(got[i] == first[i]);
        most = std::max(most, std::abs(got[i] - first[i]));
        largest = std::max(largest, std::abs(first[i]));
      }
      CAPTURE(launch);
      REQUIRE(std::isfinite(largest));
      REQUIRE(differ == 0);
      REQUIRE(Both::read(out.gpu, *b.gpu) == first_out);
      REQUIRE(Both::read(stats.gpu, *b.gpu) == first_stats);
      REQUIRE(most <= 0.01 * largest);
    }
  }
}

// Exponents are relative to a row's first scores, which lie at the diagonal or, without a mask, in
// the last block of keys: what comes later is larger by far, or smaller, or one score is.
TEST_CASE("cuda: attention on Hopper where scores rise, fall and jump" * NEEDS_GPU) {
  if (!on_hopper()) return;
  constexpr int64_t tokens = 384, heads = 3, d = 64;
  for (const Kind& kind : kinds()) {
    if (size_of(kind.type) != 2) continue;
    for (const double rise : {300.0, -300.0, 40.0, -40.0, 0.0}) {  // 0: one key's jumps by 300
      for (const bool causal : {true, false}) {
        const AttentionShape a = shape_of(2, tokens, heads, d, causal, 0);
        Both b(kind);
        std::mt19937 random(5);
        std::normal_distribution<double> normal;
        std::vector<double> values(static_cast<size_t>(2 * tokens * 3 * heads * d));
        for (size_t i = 0; i < values.size(); ++i) {
          const size_t which = i / (heads * d) % 3, token = i / (3 * heads * d) % tokens;
          const double score =
              rise == 0 ? (token == 5 ? 300.0 : 0.0) : rise * static_cast<double>(token) / tokens;
          const double shift = which == 0 ? 1 : which == 1 ? score / 8 : 0;
          values[i] = rounded(normal(random) + shift, kind.type);
        }
        const Pair qkv = b.put({2, tokens, 3, heads, d}, DType::f64, kind.type, values);
        const Pair out = b.output({2, tokens, heads, d}), stats = b.statistics({2, heads, tokens});
        const Tensor work = b.scratch(attention_workspace(*b.gpu, a, kind.type));
        attention_forward(*b.cpu, a, qkv.cpu, out.cpu, stats.cpu, Tensor(), 11);
        attention_forward(*b.gpu, a, qkv.gpu, out.gpu, stats.gpu, work, 11);
        INFO(std::string(kind.name), " by ", rise, " causal ", causal);
        CHECK(std::string(attention_backend(*b.gpu, a, kind.type)) == "hopper");
        CHECK_CLOSE(b, out, kind.tolerance);
        CHECK_CLOSE(b, stats, 1e-5);
      }
    }
  }
}

// Rows of Q, K, V or dO at token 40, and V of token 3, all else 0.5; what comes of it in dQKV.
std::vector<double> gradient_of_rows(const Kind& kind, int which, double value, double v3) {
  constexpr int64_t tokens = 256, d = 64;
  const AttentionShape a = shape_of(1, tokens, 1, d, true, 0);
  Both b(kind);
  std::vector<double> qkv_values(tokens * 3 * d, 0.5), dout_values(tokens * d, 0.5);
  for (int i = 0; i < d; ++i) {
    qkv_values[(3 * 3 + 2) * d + i] = v3;
    if (which < 3) qkv_values[(40 * 3 + which) * d + i] = value;
    if (which == 3) dout_values[40 * d + i] = value;
  }
  const Pair qkv = b.put({1, tokens, 3, 1, d}, DType::f64, kind.type, qkv_values),
             dout = b.put({1, tokens, 1, d}, DType::f64, kind.type, dout_values),
             zeros =
                 b.put({1, tokens, 3, 1, d}, kind.type, kind.type, std::vector(tokens * 3 * d, 0.));
  const Pair out = b.output({1, tokens, 1, d}), stats = b.statistics({1, 1, tokens});
  const Tensor work = b.scratch(attention_workspace(*b.gpu, a, kind.type));
  attention_forward(*b.gpu, a, qkv.gpu, out.gpu, stats.gpu, work, 11);
  attention_backward(*b.gpu, a, qkv.gpu, out.gpu, stats.gpu, dout.gpu, zeros.gpu, work, 11);
  if (which < 3 && !std::isfinite(value)) {  // and in front of it
    const std::vector<double> result = Both::read(out.gpu, *b.gpu);
    const size_t row = which == 0 ? 40 : 200;
    for (size_t i = 0; i < d; ++i) CHECK_FALSE(std::isfinite(result[row * d + i]));
    if (which < 2) {
      for (size_t i = 0; i < d; ++i) CHECK(std::isfinite(result[39 * d + i]));
    }
  }
  return Both::read(zeros.gpu, *b.gpu);
}

// Loss scaling skips a step by what its gradients show.
TEST_CASE("cuda: what is not finite stays visible behind attention on Hopper" * NEEDS_GPU) {
  if (!on_hopper()) return;
  enum { q, k, v, dout };
  for (const Kind& kind : kinds()) {
    if (size_of(kind.type) != 2) continue;
    const auto lost = [&](const std::vector<double>& gradient, int token, int which) {
      int finite = 0;
      for (size_t i = 0; i < 64; ++i)
        finite += std::isfinite(
            gradient[(static_cast<size_t>(token) * 3 + static_cast<size_t>(which)) * 64 + i]);
      return finite;
    };
    for (const double bad :
         {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
      for (const int where : {q, k, v, dout}) {
        const std::vector<double> got = gradient_of_rows(kind, where, bad, 0.5);
        INFO(std::string(kind.name), " in ", where, " ", bad);
        // A query sees keys up to itself, and a key is seen by queries from itself on.
        const bool of_query = where == q || where == dout;
        CHECK(lost(got, of_query ? 40 : 200, q) == 0);
        CHECK(lost(got, of_query ? 3 : 40, k) == 0);
        if (where != v) CHECK(lost(got, of_query ? 3 : 40, v) == 0);  // dV has no V in it
      }
    }
    // dP is float32 and finite, dS no longer.
    if (kind.type != DType::f16) continue;
    const std::vector<double> got = gradient_of_rows(kind, dout, 60000, 60000);
    CHECK(lost(got, 40, q) == 0);
    CHECK(lost(got, 3, k) == 0);
  }
}

}  // namespace
}  // namespace tally::train
