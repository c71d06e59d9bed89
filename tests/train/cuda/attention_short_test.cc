// Attention within short sequences on Hopper's matrix instructions (src/ops/attention/hopper/short.h).
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "tests/train/cuda/attention_check.h"

namespace tally::train {
namespace {

std::vector<Kind> kinds_of_16_bits() {
  std::vector<Kind> found;
  for (const Kind& kind : kinds()) {
    if (size_of(kind.type) == 2) found.push_back(kind);
  }
  return found;
}

// As the texts of a classifier: five or six share a tile.
std::vector<int64_t> short_documents() {
  std::vector<int64_t> lengths;
  for (int64_t i = 0; i < 60; ++i) lengths.push_back(14 + i * 7 % 13);
  return lengths;
}

// One sequence; all lengths of a block's halves and quarters; more heads than go at once, several of
// them by each block of threads.
TEST_CASE("cuda: attention within short sequences on Hopper" * NEEDS_GPU) {
  if (!on_hopper()) {
    MESSAGE("not run: no GPU of compute capability 9.0, or a build without kernels for it");
    return;
  }
  for (const Kind& kind : kinds_of_16_bits()) {
    for (const double dropout : {0.0, 0.3}) {  // the mask is the CPU's
      for (const AttentionShape& a :
           {shape_of(1, 128, 1, 64, false, dropout), shape_of(3, 8, 2, 64, false, dropout),
            shape_of(5, 64, 3, 64, false, dropout), shape_of(2, 72, 3, 64, false, dropout),
            shape_of(40, 128, 16, 64, false, dropout)}) {
        for (const bool repeatable : {false, true})
          CHECK(check(kind, a, {.repeatable = repeatable}) == "hopper-short");
      }
    }
    CHECK(check(kind, shape_of(1, 128, 2, 64, false, 0), {.own_16_bits = false}) != "hopper-short");
    for (const AttentionShape& a :
         {shape_of(1, 128, 2, 64, true, 0), shape_of(1, 60, 2, 64, false, 0),
          shape_of(1, 136, 2, 64, false, 0), shape_of(1, 128, 2, 32, false, 0)})
      CHECK(check(kind, a) != "hopper-short");
  }
}

TEST_CASE("cuda: attention within short documents on Hopper" * NEEDS_GPU) {
  if (!on_hopper()) return;
  const Ways known{.known_documents = true};
  for (const Kind& kind : kinds_of_16_bits()) {
    CHECK(check(kind, shape_of(1, 517, 3, 64, false, 0), known, {1, 128, 127, 60, 65, 64, 63, 9}) ==
          "hopper-short");
    CHECK(check(kind, shape_of(3, 96, 2, 64, false, 0), known, {96, 40, 56, 90, 1, 5}) ==
          "hopper-short");
    std::vector<int64_t> many;  // more than go at once
    int64_t all = 0;
    for (int64_t i = 0; i < 60; ++i) {
      many.push_back(1 + i * 37 % 128);
      all += many.back();
    }
    CHECK(check(kind, shape_of(1, all, 12, 64, false, 0), known, many) == "hopper-short");
    const std::vector<int64_t> texts = short_documents();  // many of them in each tile
    const int64_t tokens = std::accumulate(texts.begin(), texts.end(), int64_t{0});
    CHECK(check(kind, shape_of(1, tokens, 12, 64, false, 0), known, texts) == "hopper-short");
    CHECK(check(kind, shape_of(1, 200, 2, 64, false, 0), known, {129, 71}) == "cudnn");
  }
}

// out is linear in V for a fixed mask, so <dout, out> = <dV, V>, but only where the backward pass
// draws the mask of the forward pass. With V of ones, a row of out is its kept share, over 1 - p.
TEST_CASE("cuda: dropout within short documents on Hopper" * NEEDS_GPU) {
  if (!on_hopper()) return;
  constexpr double p = 0.4;
  for (const Kind& kind : kinds_of_16_bits()) {
    for (const std::vector<int64_t>& lengths :
         {std::vector<int64_t>{128, 5, 100, 63, 120, 88, 1, 90}, short_documents()}) {
      const int64_t tokens = std::accumulate(lengths.begin(), lengths.end(), int64_t{0});
      AttentionShape a = shape_of(1, tokens, 4, 64, false, p);
      Both b(kind);
      a.documents = true;
      a.most_documents = static_cast<int64_t>(lengths.size());
      a.longest = 128;
      const Pair cu_seqlens = cu_seqlens_of(b, a, lengths);
      std::vector<double> values(static_cast<size_t>(tokens * 3 * 4 * 64));
      for (size_t i = 0; i < values.size(); ++i) values[i] = i / 256 % 3 == 2 ? 1 : 0;
      const Pair qkv = b.put({1, tokens, 3, 4, 64}, DType::f64, kind.type, values);
      const Pair out = b.output({1, tokens, 4, 64}), other = b.output({1, tokens, 4, 64});
      const Pair stats = b.statistics({1, 4, tokens}), dqkv = b.output({1, tokens, 3, 4, 64});
      const auto arguments = [&](const Tensor& to, uint64_t seed) {
        AttentionArgs args = packed_attention(a, qkv.gpu, {Out(to), Out(stats.gpu)}, {}, seed);
        args.cu_seqlens = cu_seqlens.gpu;
        return args;
      };
      REQUIRE(std::string(attention_backend(*b.gpu, a, kind.type)) == "hopper-short");
      attention_forward(*b.gpu, arguments(other.gpu, 12));
      attention_forward(*b.gpu, arguments(out.gpu, 11));
      CHECK(Both::read(out.gpu, *b.gpu) != Both::read(other.gpu, *b.gpu));
      attention_backward(*b.gpu, arguments(out.gpu, 11),
                         packed_gradients(a, out.gpu, Out(dqkv.gpu)));
      const std::vector<double> o = Both::read(out.gpu, *b.gpu), g = Both::read(dqkv.gpu, *b.gpu);
      double left = 0, right = 0, sum = 0;
      for (const double v : o) {
        left += v * v;
        sum += v;
      }
      for (size_t i = 0; i < g.size(); ++i) {
        if (i / 256 % 3 == 2) right += g[i];
      }
      CHECK(right == doctest::Approx(left).epsilon(1e-2));
      // The mean over 226,000 draws has a deviation of 0.0017, over 96,000 of 0.0026.
      CHECK(sum / static_cast<double>(o.size()) == doctest::Approx(1).epsilon(0.015));
    }
  }
}

// Any difference between two launches is a race.
TEST_CASE("cuda: attention within short sequences is the same in each of many launches" *
          NEEDS_GPU) {
  if (!on_hopper()) return;
  for (const Kind& kind : kinds_of_16_bits()) {
    AttentionShape a = shape_of(64, 128, 16, 64, false, 0.1);
    a.scale = 0.2;
    Both b(kind);
    const Pair qkv = b.input({a.batch, a.tokens, 3, a.heads, a.head_dim}, 1.5);
    const Pair out = b.output({a.batch, a.tokens, a.heads, a.head_dim});
    const Pair stats = b.statistics({a.batch, a.heads, a.tokens});
    const Pair dout = b.input({a.batch, a.tokens, a.heads, a.head_dim});
    const Pair dqkv = b.output({a.batch, a.tokens, 3, a.heads, a.head_dim});
    std::vector<double> first, first_out;
    for (int launch = 0; launch < 200; ++launch) {
      const AttentionArgs args =
          packed_attention(a, qkv.gpu, {Out(out.gpu), Out(stats.gpu)}, {}, 11);
      attention_forward(*b.gpu, args);
      attention_backward(*b.gpu, args, packed_gradients(a, dout.gpu, Out(dqkv.gpu)));
      if (launch % 40 != 0) continue;  // reading takes longer than the launch
      const std::vector<double> got = Both::read(dqkv.gpu, *b.gpu);
      if (first.empty()) {
        first = got;
        first_out = Both::read(out.gpu, *b.gpu);
      }
      CAPTURE(launch);
      REQUIRE(got == first);
      REQUIRE(Both::read(out.gpu, *b.gpu) == first_out);
    }
  }
}

// Loss scaling skips a step if its gradients show that.
TEST_CASE("cuda: attention within short sequences preserves NaNs and infinities" * NEEDS_GPU) {
  if (!on_hopper()) return;
  constexpr int64_t tokens = 128, d = 64, at = 70;
  for (const Kind& kind : kinds_of_16_bits()) {
    for (const double bad :
         {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
      for (size_t which = 0; which < 3; ++which) {
        const AttentionShape a = shape_of(1, tokens, 1, d, false, 0);
        Both b(kind);
        std::vector<double> values(tokens * 3 * d, 0.5);
        values[(at * 3 + which) * d + 7] = bad;
        const Pair qkv = b.put({1, tokens, 3, 1, d}, DType::f64, kind.type, values);
        const std::vector<double> zeros(tokens * d, 0.0);  // output() holds NaNs of its own
        const Tensor out = b.put({1, tokens, 1, d}, kind.type, kind.type, zeros).gpu;
        const Pair stats = b.statistics({1, 1, tokens});
        attention_forward(*b.gpu, packed_attention(a, qkv.gpu, {Out(out), Out(stats.gpu)}, {}, 11));
        const std::vector<double> got = Both::read(out, *b.gpu);
        INFO(std::string(kind.name), " ", bad, " in ", which);
        CHECK_FALSE(std::isfinite(got[at * d + 7]));
        if (which == 0) CHECK(std::isfinite(got[(at - 1) * d + 7]));
      }
    }
  }
}

}  // namespace
}  // namespace tally::train
