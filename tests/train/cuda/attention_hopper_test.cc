// Attention on Hopper's matrix instructions (src/ops/attention/hopper/hopper.h).
#include <algorithm>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "tests/train/cuda/attention_check.h"

namespace tally::train {
namespace {

// Blocks of 128 queries and keys: one of each; a few; so many that every SM takes several from the
// queue, some of them with one turn only.
TEST_CASE("cuda: flash attention on Hopper" * NEEDS_GPU) {
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
        CHECK(check(kind, a) == (causal || a.tokens > 128 ? "hopper" : "hopper-short"));
        if (a.tokens == 384) CHECK(check(kind, a, {.own_16_bits = false}) != "hopper");
      }
    }
    for (const bool causal : {true, false}) {  // dropout's mask is the CPU's
      for (const AttentionShape& a :
           {shape_of(2, 384, 3, 64, causal, 0.3), shape_of(7, 256, 30, 64, causal, 0.1),
            shape_of(1, 1024, 2, 64, causal, 0.5)})
        CHECK(check(kind, a) == "hopper");
    }
    for (const bool causal : {true, false}) {
      for (const int64_t groups : {1, 2, 6}) {  // grouped queries: 12, 6 and 2 heads a key
        for (const AttentionShape& shape :
             {shape_of(2, 256, 12, 64, causal, 0), shape_of(5, 384, 24, 64, causal, 0)}) {
          AttentionShape a = shape;
          a.groups = groups;
          if (groups == 2) a.dropout = 0.2;
          CHECK(check(kind, a) == "hopper");
        }
      }
    }
    for (const AttentionShape& a :
         {shape_of(1, 192, 2, 64, true, 0), shape_of(1, 64, 2, 64, true, 0),
          shape_of(1, 128, 2, 32, true, 0)})
      CHECK(check(kind, a) != "hopper");
    CHECK(check(kind, shape_of(1, 128, 2, 64, true, 0), {.repeatable = true}) != "hopper");
  }
}

// `count` copies of a tensor, one after the other.
Tensor copies(Both& b, const Tensor& t, int64_t count, std::initializer_list<int64_t> shape) {
  const Tensor all(b.scratch(t.bytes() * static_cast<size_t>(count)).data, t.dtype, shape);
  for (int64_t i = 0; i < count; ++i)
    b.gpu->copy(static_cast<char*>(all.data) + static_cast<size_t>(i) * t.bytes(), t.data,
                t.bytes());
  return all;
}
// Whether everything is `one` again and again, except for indices that `skip` names.
template <typename Skip>
bool repeats(const std::vector<double>& all, const std::vector<double>& one, Skip skip) {
  for (size_t i = 0; i < all.size(); ++i) {
    if (!skip(i % one.size()) && !(all[i] == one[i % one.size()])) return false;
  }
  return true;
}

// More heads than run together forward, and several blocks an SM.
void check_equal_samples(int64_t d, int64_t count) {
  constexpr int64_t tokens = 128, heads = 70;
  const int64_t row = heads * d;
  const AttentionShape one = shape_of(1, tokens, heads, d, true, 0),
                       all = shape_of(count, tokens, heads, d, true, 0);
  Both b({DType::bf16, MatmulMode::ieee, "bf16", 1e-2});
  const Pair qkv = b.input({1, tokens, 3, heads, d}), dout = b.input({1, tokens, heads, d});
  const Pair out = b.output({1, tokens, heads, d}), dqkv = b.output({1, tokens, 3, heads, d});
  const Pair stats = b.statistics({1, heads, tokens});
  const Tensor work = b.scratch(attention_workspace(*b.gpu, all, DType::bf16));
  const Tensor many_qkv = copies(b, qkv.gpu, count, {count, tokens, 3, heads, d}),
               many_dout = copies(b, dout.gpu, count, {count, tokens, heads, d}),
               many_out = copies(b, out.gpu, count, {count, tokens, heads, d}),
               many_dqkv = copies(b, dqkv.gpu, count, {count, tokens, 3, heads, d}),
               many_stats = copies(b, stats.gpu, count, {count, heads, tokens});
  attention_forward(*b.gpu,
                    packed_attention(one, qkv.gpu, {Out(out.gpu), Out(stats.gpu)}, Out(work), 11));
  attention_backward(*b.gpu,
                     packed_attention(one, qkv.gpu, {Out(out.gpu), Out(stats.gpu)}, Out(work), 11),
                     packed_gradients(one, dout.gpu, Out(dqkv.gpu)));
  attention_forward(
      *b.gpu, packed_attention(all, many_qkv, {Out(many_out), Out(many_stats)}, Out(work), 11));
  attention_backward(
      *b.gpu, packed_attention(all, many_qkv, {Out(many_out), Out(many_stats)}, Out(work), 11),
      packed_gradients(all, many_dout, Out(many_dqkv)));
  const auto none = [](size_t) { return false; };
  const auto of_q = [&](size_t i) { return i / static_cast<size_t>(row) % 3 == 0; };
  CHECK(repeats(Both::read(many_out, *b.gpu), Both::read(out.gpu, *b.gpu), none));
  CHECK(repeats(Both::read(many_stats, *b.gpu), Both::read(stats.gpu, *b.gpu), none));
  CHECK(repeats(Both::read(many_dqkv, *b.gpu), Both::read(dqkv.gpu, *b.gpu), of_q));
}

TEST_CASE("cuda: flash attention on Hopper of many equal samples" * NEEDS_GPU) {
  if (!on_hopper()) return;
  check_equal_samples(64, 19);  // groups of two sizes, and ten blocks an SM
}

// All sums but dQ's have a fixed order, so any difference between two launches is a race; dQ's
// differ in their last bits only. Scores are large, so that probabilities are far from even, and
// the scratch holds NaNs.
void check_many_launches(const Kind& kind, AttentionShape a, int launches) {
  a.scale = 1.6 / std::sqrt(static_cast<double>(a.head_dim));
  Both b(kind);
  const int64_t heads = a.heads + 2 * a.kv_heads();
  const Pair qkv = b.input({a.batch, a.tokens, heads, a.head_dim}, 1.5);
  const Pair out = b.output({a.batch, a.tokens, a.heads, a.head_dim});
  const Pair stats = b.statistics({a.batch, a.heads, a.tokens});
  const Pair dout = b.input({a.batch, a.tokens, a.heads, a.head_dim});
  const Pair dqkv = b.output({a.batch, a.tokens, heads, a.head_dim});
  const size_t bytes = attention_workspace(*b.gpu, a, kind.type);
  const Tensor work = b.scratch(bytes);
  const std::vector<char> ones(bytes, static_cast<char>(0xff));
  std::vector<double> first, first_out, first_stats;
  const auto row = static_cast<size_t>(heads * a.head_dim),
             of_q = static_cast<size_t>(a.heads * a.head_dim);
  for (int launch = 0; launch < launches; ++launch) {
    if (launch % (launches / 3) == 0) b.gpu->copy(work.data, ones.data(), bytes);
    attention_forward(*b.gpu,
                      packed_attention(a, qkv.gpu, {Out(out.gpu), Out(stats.gpu)}, Out(work), 11));
    attention_backward(*b.gpu,
                       packed_attention(a, qkv.gpu, {Out(out.gpu), Out(stats.gpu)}, Out(work), 11),
                       packed_gradients(a, dout.gpu, Out(dqkv.gpu)));
    if (launch % (launches / 10) != 0) continue;  // reading takes longer than the launch
    const std::vector<double> got = Both::read(dqkv.gpu, *b.gpu);
    if (first.empty()) {
      first = got;
      first_out = Both::read(out.gpu, *b.gpu);
      first_stats = Both::read(stats.gpu, *b.gpu);
    }
    size_t differ = 0, lost = 0;
    double most = 0, largest = 0;
    for (size_t i = 0; i < got.size(); ++i) {
      if (i % row >= of_q) differ += !(got[i] == first[i]);
      most = std::max(most, std::abs(got[i] - first[i]));
      largest = std::max(largest, std::abs(first[i]));
      lost += !std::isfinite(got[i]);
    }
    CAPTURE(launch);
    REQUIRE(lost == 0);
    REQUIRE(differ == 0);
    REQUIRE(Both::read(out.gpu, *b.gpu) == first_out);
    REQUIRE(Both::read(stats.gpu, *b.gpu) == first_stats);
    REQUIRE(most <= 0.01 * largest);
  }
}

TEST_CASE("cuda: flash attention on Hopper is the same in each of many launches" * NEEDS_GPU) {
  if (!on_hopper()) return;
  for (const Kind& kind : kinds()) {
    if (size_of(kind.type) == 2) check_many_launches(kind, shape_of(4, 1024, 12, 64, true, 0), 300);
  }
}

// Exponents are relative to a row's first scores, which lie at the diagonal or, without a mask, in
// the last block of keys. Later scores are far larger, or smaller, or one score is.
void check_scores(int64_t d, int64_t batch, int64_t heads) {
  constexpr int64_t tokens = 256;
  for (const Kind& kind : kinds()) {
    if (size_of(kind.type) != 2) continue;
    for (const double rise : {300.0, -300.0, 40.0, 0.0}) {  // 0: one key's jumps by 300
      for (const bool causal : {true, false}) {
        const AttentionShape a = shape_of(batch, tokens, heads, d, causal, 0);
        Both b(kind);
        std::mt19937 random(5);
        std::normal_distribution<double> normal;
        std::vector<double> values(static_cast<size_t>(batch * tokens * 3 * heads * d));
        for (size_t i = 0; i < values.size(); ++i) {
          const auto row = static_cast<size_t>(heads * d);
          const size_t which = i / row % 3, token = i / (3 * row) % tokens;
          const double score =
              rise == 0 ? (token == 5 ? 300.0 : 0.0) : rise * static_cast<double>(token) / tokens;
          const double shift = which == 0   ? 1
                               : which == 1 ? score / std::sqrt(static_cast<double>(d))
                                            : 0;
          values[i] = normal(random) + shift;
        }
        round_all(values, kind.type);
        const Pair qkv = b.put({batch, tokens, 3, heads, d}, DType::f64, kind.type, values);
        const Pair out = b.output({batch, tokens, heads, d}),
                   stats = b.statistics({batch, heads, tokens});
        const Tensor work = b.scratch(attention_workspace(*b.gpu, a, kind.type));
        attention_forward(*b.cpu,
                          packed_attention(a, qkv.cpu, {Out(out.cpu), Out(stats.cpu)}, {}, 11));
        attention_forward(
            *b.gpu, packed_attention(a, qkv.gpu, {Out(out.gpu), Out(stats.gpu)}, Out(work), 11));
        INFO(std::string(kind.name), " by ", rise, " causal ", causal);
        CHECK(std::string(attention_backend(*b.gpu, a, kind.type)) == "hopper");
        CHECK_CLOSE(b, out, kind.tolerance);
        CHECK_CLOSE(b, stats, 1e-5);
      }
    }
  }
}

TEST_CASE("cuda: flash attention on Hopper where scores rise, fall and jump" * NEEDS_GPU) {
  if (!on_hopper()) return;
  check_scores(64, 8, 9);  // more blocks than go at once
}

constexpr int64_t visible_tokens = 256;

struct Result {
  int64_t d;
  std::vector<double> out, dqkv;

  // How many values of one row are finite.
  int64_t finite(const std::vector<double>& values, int64_t row) const {
    int64_t count = 0;
    for (int64_t i = 0; i < d; ++i)
      count += std::isfinite(values[static_cast<size_t>(row * d + i)]);
    return count;
  }
};

// All values are 0.5, except the row of Q, K, V or dO (0 to 3) at token `at`, and V's row of token
// 3.
Result with_row(const Kind& kind, int64_t d, int which, int64_t at, double value, double v3) {
  constexpr int64_t tokens = visible_tokens;
  const AttentionShape a = shape_of(1, tokens, 1, d, true, 0);
  Both b(kind);
  std::vector<double> qkv_values(static_cast<size_t>(tokens * 3 * d), 0.5),
      dout_values(static_cast<size_t>(tokens * d), 0.5);
  for (int64_t i = 0; i < d; ++i) {
    qkv_values[static_cast<size_t>((3 * 3 + 2) * d + i)] = v3;
    if (which < 3) qkv_values[static_cast<size_t>((at * 3 + which) * d + i)] = value;
    if (which == 3) dout_values[static_cast<size_t>(at * d + i)] = value;
  }
  const Pair qkv = b.put({1, tokens, 3, 1, d}, DType::f64, kind.type, qkv_values),
             dout = b.put({1, tokens, 1, d}, DType::f64, kind.type, dout_values);
  const auto zeros = [&](int64_t n) {  // output() would hold NaNs
    return b.put({n}, kind.type, kind.type, std::vector(static_cast<size_t>(n), 0.0)).gpu;
  };
  const Tensor out = zeros(tokens * d).view({1, tokens, 1, d}),
               dqkv = zeros(tokens * 3 * d).view({1, tokens, 3, 1, d});
  const Pair stats = b.statistics({1, 1, tokens});
  const Tensor work = b.scratch(attention_workspace(*b.gpu, a, kind.type));
  attention_forward(*b.gpu,
                    packed_attention(a, qkv.gpu, {Out(out), Out(stats.gpu)}, Out(work), 11));
  attention_backward(*b.gpu,
                     packed_attention(a, qkv.gpu, {Out(out), Out(stats.gpu)}, Out(work), 11),
                     packed_gradients(a, dout.gpu, Out(dqkv)));
  return {d, Both::read(out, *b.gpu), Both::read(dqkv, *b.gpu)};
}

// Loss scaling skips a step if its gradients show that.
void check_not_finite(const Kind& kind, int64_t d) {
  enum { q, k, v, dout };
  for (const double bad :
       {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    for (const int where : {q, k, v, dout}) {
      for (const int64_t at : {40, 100}) {  // in the first and the second half of a block
        const Result got = with_row(kind, d, where, at, bad, 0.5);
        INFO(std::string(kind.name), " ", bad, " in ", where, " at ", at, " of ", d);
        // A query sees keys up to itself, and a key is seen by queries from itself on.
        const bool of_query = where == q || where == dout;
        const int64_t query = of_query ? at : 200, key = of_query ? 3 : at;
        if (where != dout) CHECK(got.finite(got.out, query) == 0);
        if (where != v) CHECK(got.finite(got.out, at - 1) == d);  // of V, 0 times NaN enters
        CHECK(got.finite(got.dqkv, query * 3 + q) == 0);
        CHECK(got.finite(got.dqkv, key * 3 + k) == 0);
        if (where != v) CHECK(got.finite(got.dqkv, key * 3 + v) == 0);  // dV has no V in it
      }
    }
  }
  // dP is float32 and finite, dS no longer.
  if (kind.type != DType::f16) return;
  const Result got = with_row(kind, d, dout, 40, 60000, 60000);
  CHECK(got.finite(got.out, 40) == d);
  CHECK(got.finite(got.dqkv, 40 * 3 + q) == 0);
  CHECK(got.finite(got.dqkv, 3 * 3 + k) == 0);
}

TEST_CASE("cuda: flash attention on Hopper preserves NaNs and infinities" * NEEDS_GPU) {
  if (!on_hopper()) return;
  for (const Kind& kind : kinds()) {
    if (size_of(kind.type) != 2) continue;
    check_not_finite(kind, 64);
  }
}

// TALLY_ATTENTION=hopper for as long as this lives: both passes are ours.
struct OurBackward {
  OurBackward() { setenv("TALLY_ATTENTION", "hopper", 1); }
  ~OurBackward() { unsetenv("TALLY_ATTENTION"); }
};

struct WideShape {
  int64_t batch, tokens, heads, groups;
  bool causal;
  double dropout;
};
std::string check_wide(const Kind& kind, const WideShape& w, bool repeatable = false) {
  AttentionShape a = shape_of(w.batch, w.tokens, w.heads, 128, w.causal, w.dropout);
  a.groups = w.groups;
  return check(kind, a, {.repeatable = repeatable});
}

TEST_CASE("cuda: wide attention on Hopper" * NEEDS_GPU) {
  if (!on_hopper()) {
    MESSAGE("not run: no GPU of compute capability 9.0, or a build without kernels for it");
    return;
  }
  const OurBackward ours;
  for (const Kind& kind : kinds()) {
    if (size_of(kind.type) != 2) continue;
    for (const bool causal : {true, false}) {
      for (const WideShape& w : {WideShape{1, 128, 1, 1, causal, 0},
                                 {2, 384, 3, 3, causal, 0},
                                 {1, 384, 3, 3, causal, 0.3},
                                 {1, 512, 4, 2, causal, 0},
                                 {2, 256, 6, 1, causal, 0.2}})
        CHECK(check_wide(kind, w) == "hopper");
    }
    if (kind.type != DType::bf16) continue;
    CHECK(check_wide(kind, {1, 2048, 1, 1, true, 0}) == "hopper");
    // Every SM takes several blocks of queries, and some take several of keys.
    CHECK(check_wide(kind, {9, 256, 16, 16, true, 0}) == "hopper");
    CHECK(check_wide(kind, {24, 128, 16, 8, true, 0}) == "hopper");
  }
}

TEST_CASE("cuda: wide attention on Hopper with cuDNN's backward pass" * NEEDS_GPU) {
  if (!on_hopper()) return;
  for (const Kind& kind : kinds()) {
    if (size_of(kind.type) != 2) continue;
    for (const bool causal : {true, false}) {
      WARN(check_wide(kind, {2, 256, 6, 2, causal, 0}) == "hopper+cudnn");
      CHECK(check_wide(kind, {1, 256, 2, 1, causal, 0.2}) == "hopper");  // one mask
      CHECK(check_wide(kind, {1, 256, 2, 2, causal, 0}) == "hopper");
    }
    CHECK(check_wide(kind, {1, 192, 2, 2, true, 0}) != "hopper");
    WARN(check_wide(kind, {1, 256, 2, 1, true, 0}, true) == "cudnn");
    Both b(kind);
    WARN(std::string(attention_backend(*b.gpu, shape_of(1, 8192, 2, 128, true, 0), kind.type)) ==
         "hopper+cudnn");
  }
}

TEST_CASE("cuda: wide attention on Hopper is the same for equal samples and launches" * NEEDS_GPU) {
  if (!on_hopper()) return;
  const OurBackward ours;
  check_equal_samples(128, 7);
  for (const Kind& kind : kinds()) {
    if (size_of(kind.type) != 2) continue;
    AttentionShape a = shape_of(2, 1024, 12, 128, true, 0);
    if (kind.type == DType::f16) a.groups = 3;
    check_many_launches(kind, a, 150);
  }
}

// Blocks of threads that start late, because another kernel has their SMs, find the queue empty.
TEST_CASE("cuda: wide attention on Hopper beside another kernel" * NEEDS_GPU) {
  if (!on_hopper()) return;
  Both b({DType::bf16, MatmulMode::ieee, "bf16", 1e-2});
  const auto args = [&](const AttentionShape& a) {
    const Pair qkv = b.input({a.batch, a.tokens, 3, a.heads, a.head_dim}),
               out = b.output({a.batch, a.tokens, a.heads, a.head_dim}),
               stats = b.statistics({a.batch, a.heads, a.tokens});
    const Tensor work = b.scratch(attention_workspace(*b.gpu, a, DType::bf16));
    return packed_attention(a, qkv.gpu, {Out(out.gpu), Out(stats.gpu)}, Out(work), 11);
  };
  const AttentionArgs large = args(shape_of(1, 2048, 32, 128, true, 0)),
                      small = args(shape_of(1, 128, 140, 128, true, 0));
  const auto result = [&] {
    return Both::read(Tensor(small.out.data, DType::bf16, {128 * 140 * 128}), *b.gpu);
  };
  attention_forward(*b.gpu, small);
  const std::vector<double> alone = result();
  const auto side = make_stream(Device{DeviceKind::cuda, 0});
  for (int i = 0; i < 10; ++i) {
    attention_forward({*side, b.gpu.options}, large);
    attention_forward(*b.gpu, small);
    CHECK(result() == alone);
  }
  side->synchronize();
}

TEST_CASE("cuda: wide attention on Hopper where scores rise, jump and are not finite" * NEEDS_GPU) {
  if (!on_hopper()) return;
  check_scores(128, 2, 3);
  for (const Kind& kind : kinds()) {
    if (size_of(kind.type) == 2) check_not_finite(kind, 128);
  }
}

}  // namespace
}  // namespace tally::train
