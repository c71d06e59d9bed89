// Attention within documents (cu_seqlens) on the CPU: against each document computed alone, and under
// dropout, whose masks depend on the place in the sequence, against the formula.
#include <doctest/doctest.h>

#include <cmath>
#include <numeric>

#include "src/device/philox.h"
#include "src/ops/attention/attention.h"
#include "tests/train/ops/numbers.h"

using namespace tally::train;

namespace {

constexpr int64_t batch = 4, tokens = 150, heads = 3, width = 20, row = heads * width;

// Of the four sequences in turn. Rows of scores are computed in blocks of 128: the third document
// crosses the end of a block, the last but one begins and ends within one.
const std::vector<int64_t> lengths{1, 60, 89, 150, 149, 1, 70, 1, 1, 78};

AttentionShape shape_of(AttentionMask mask, double dropout = 0) {
  AttentionShape s{batch, tokens, heads, width, mask, 1 / std::sqrt(20.0), dropout};
  s.documents = true;
  return s;
}

// Where documents begin, then the end of all, `repeats` times.
std::vector<int32_t> starts(size_t repeats = 1) {
  std::vector<int32_t> cu{0};
  for (const int64_t n : lengths) cu.push_back(cu.back() + static_cast<int32_t>(n));
  cu.insert(cu.end(), repeats - 1, cu.back());
  return cu;
}
Tensor tensor_of(std::vector<int32_t>& values) {
  return {values.data(), DType::i32, {static_cast<int64_t>(values.size())}};
}

// Everything that the two directions read and write, in one type.
struct Operands {
  explicit Operands(DType type)
      : qkv(Numbers({batch, tokens, 3, heads, width}, 1), type),
        dout(Numbers({batch, tokens, heads, width}, 2), type),
        out(zeros({batch, tokens, heads, width}), type),
        dqkv(zeros({batch, tokens, 3, heads, width}), type),
        stats(zeros({batch, heads, tokens}), wide(type)),
        q_sums(Numbers({row}, 3), wide(type)) {}
  static DType wide(DType t) { return t == DType::f64 ? DType::f64 : DType::f32; }
  Rounded qkv, dout, out, dqkv, stats, q_sums;
};

void run(Stream& s, const AttentionShape& shape, const Tensor& cu_seqlens, const Operands& o,
         DropoutSeed seed = 0) {
  AttentionArgs args = packed_attention(shape, o.qkv, {Out(o.out), Out(o.stats)}, {}, seed);
  args.cu_seqlens = cu_seqlens;
  attention_forward(s, args);
  attention_backward(s, args, packed_gradients(shape, o.dout, Out(o.dqkv), Out(o.q_sums)));
}

// Each document as a micro batch of its own. The statistics come in the order of run()'s.
void run_alone(Stream& s, AttentionShape shape, const Operands& o) {
  shape.documents = false;
  shape.batch = 1;
  int64_t first = 0;
  for (const int64_t n : lengths) {
    shape.tokens = n;
    const auto rows = [&](const Tensor& t, int64_t parts) {
      const Tensor all = t.view({batch * tokens, parts * row});
      return all.rows(first, n);
    };
    const Rounded stats(zeros({1, heads, n}), Operands::wide(o.qkv.t().dtype));
    const AttentionArgs args =
        packed_attention(shape, rows(o.qkv, 3), {Out(rows(o.out, 1)), Out(stats)}, {}, 0);
    attention_forward(s, args);
    attention_backward(
        s, args, packed_gradients(shape, rows(o.dout, 1), Out(rows(o.dqkv, 3)), Out(o.q_sums)));
    const size_t bytes = size_of(stats.t().dtype);
    for (int64_t h = 0; h < heads; ++h) {
      const int64_t to = (first / tokens * heads + h) * tokens + first % tokens;
      s.copy(static_cast<char*>(o.stats.t().data) + static_cast<size_t>(to) * bytes,
             static_cast<char*>(stats.t().data) + static_cast<size_t>(h * n) * bytes,
             static_cast<size_t>(n) * bytes);
    }
    first += n;
  }
}

// By the formula in attention.h, and its derivatives.
struct Formula {
  Formula(const AttentionShape& shape, uint64_t seed, const Operands& o)
      : s(shape), qkv(o.qkv.get()), dout(o.dout.get()), out(dout.size()), dqkv(qkv.size()) {
    int64_t first = 0;
    for (const int64_t n : lengths) {
      for (int64_t h = 0; h < heads; ++h)
        for (int64_t i = first; i < first + n; ++i)
          query(h, i, first, s.causal() ? i + 1 : first + n, seed);
      first += n;
    }
  }
  static size_t at(int64_t token, int64_t part, int64_t h) {
    return static_cast<size_t>(((token * 3 + part) * heads + h) * width);
  }
  // Query i, counted through the micro batch, sees keys [first, last).
  void query(int64_t h, int64_t i, int64_t first, int64_t last, uint64_t seed) {
    const size_t q = at(i, 0, h), o = static_cast<size_t>((i * heads + h) * width);
    const int64_t sequence = i / tokens;
    std::vector<double> p, mask, dp;
    double sum = 0, d = 0;
    for (int64_t j = first; j < last; ++j) {
      double score = 0, change = 0;
      for (size_t c = 0; c < width; ++c) {
        score += qkv[q + c] * qkv[at(j, 1, h) + c];
        change += dout[o + c] * qkv[at(j, 2, h) + c];
      }
      p.push_back(std::exp(s.scale * score));
      sum += p.back();
      const int64_t element = ((sequence * heads + h) * tokens + i % tokens) * tokens + j % tokens;
      const bool keep =
          dropout_keeps(seed, static_cast<uint64_t>(element), dropout_threshold(s.dropout));
      mask.push_back(s.dropout == 0 ? 1 : keep ? dropout_scale(s.dropout) : 0);
      dp.push_back(change * mask.back());
    }
    for (size_t k = 0; k < p.size(); ++k) {
      p[k] /= sum;
      d += p[k] * dp[k];
    }
    for (size_t k = 0; k < p.size(); ++k) {
      const int64_t j = first + static_cast<int64_t>(k);
      const double ds = s.scale * p[k] * (dp[k] - d);
      for (size_t c = 0; c < width; ++c) {
        out[o + c] += p[k] * mask[k] * qkv[at(j, 2, h) + c];
        dqkv[q + c] += ds * qkv[at(j, 1, h) + c];
        dqkv[at(j, 1, h) + c] += ds * qkv[q + c];
        dqkv[at(j, 2, h) + c] += p[k] * mask[k] * dout[o + c];
      }
    }
  }
  const AttentionShape s;
  const std::vector<double> qkv, dout;
  std::vector<double> out, dqkv;
};

struct Type {
  DType type;
  double tolerance;
};
// Of bf16 the sums agree to float32's accuracy; some results fall to the other side when rounded.
const std::vector<Type> types{{DType::f64, 1e-12}, {DType::f32, 1e-6}, {DType::bf16, 1e-3}};

}  // namespace

TEST_CASE("attention within documents is each document's alone") {
  REQUIRE(std::accumulate(lengths.begin(), lengths.end(), int64_t{0}) == batch * tokens);
  const auto stream = make_stream(Device{});
  for (const Type& t : types) {
    for (const AttentionMask mask : {AttentionMask::none, AttentionMask::causal}) {
      CAPTURE(dtype_name(t.type));
      CAPTURE((mask == AttentionMask::causal));
      const Operands together(t.type), alone(t.type);
      std::vector<int32_t> cu = starts();
      run(*stream, shape_of(mask), tensor_of(cu), together);
      run_alone(*stream, shape_of(mask), alone);
      CHECK(relative_error(together.out.get(), alone.out.get()) < t.tolerance);
      CHECK(relative_error(together.stats.get(), alone.stats.get()) < t.tolerance);
      CHECK(relative_error(together.dqkv.get(), alone.dqkv.get()) < t.tolerance);
      CHECK(relative_error(together.q_sums.get(), alone.q_sums.get()) < t.tolerance);
    }
  }
}

TEST_CASE("attention within documents under dropout follows the formula") {
  const auto stream = make_stream(Device{});
  for (const double dropout : {0.0, 0.3}) {
    for (const AttentionMask mask : {AttentionMask::none, AttentionMask::causal}) {
      const AttentionShape shape = shape_of(mask, dropout);
      const Operands o(DType::f64);
      std::vector<int32_t> cu = starts();
      run(*stream, shape, tensor_of(cu), o, 77);
      const Formula want(shape, 77, o);
      CHECK(relative_error(o.out.get(), want.out) < 1e-12);
      CHECK(relative_error(o.dqkv.get(), want.dqkv) < 1e-12);
    }
  }
}

// A loader's array has room for a document a token.
TEST_CASE("attention within documents does not depend on how often the end is repeated") {
  const auto stream = make_stream(Device{});
  const AttentionShape shape = shape_of(AttentionMask::causal);
  const Operands once(DType::f32), often(DType::f32);
  std::vector<int32_t> cu = starts(), longer = starts(batch * tokens + 1 - lengths.size());
  REQUIRE(longer.size() == batch * tokens + 1);
  run(*stream, shape, tensor_of(cu), once);
  run(*stream, shape, tensor_of(longer), often);
  CHECK(once.out.get() == often.out.get());
  CHECK(once.dqkv.get() == often.dqkv.get());
}

TEST_CASE("attention of documents that are whole sequences is attention without documents") {
  const auto stream = make_stream(Device{});
  AttentionShape shape = shape_of(AttentionMask::causal);
  const Operands with(DType::f32), without(DType::f32);
  std::vector<int32_t> cu{0, 150, 300, 450, 600};
  run(*stream, shape, tensor_of(cu), with);
  shape.documents = false;
  run(*stream, shape, Tensor(), without);
  CHECK(with.out.get() == without.out.get());
  CHECK(with.dqkv.get() == without.dqkv.get());
}
