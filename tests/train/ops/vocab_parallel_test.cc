// A vocabulary that several processes divide, against one that has all of it; and the addition to
// the residual stream alone.
#include <doctest/doctest.h>

#include <algorithm>
#include <limits>

#include "src/device/philox.h"
#include "src/ops/embedding/embedding.h"
#include "src/ops/loss/loss.h"
#include "src/ops/norm/norm.h"
#include "tests/train/ops/numbers.h"

using namespace tally::train;

namespace {

Tensor integers(std::vector<int32_t>& values) {
  return Tensor(values.data(), DType::i32, {static_cast<int64_t>(values.size())});
}

// Columns [first, first + width) of a matrix.
Numbers columns_of(const Numbers& whole, int64_t first, int64_t width) {
  Numbers part = zeros({whole.t().dim(0), width});
  for (int64_t i = 0; i < whole.t().dim(0); ++i)
    for (int64_t j = 0; j < width; ++j)
      part[static_cast<size_t>(i * width + j)] =
          whole[static_cast<size_t>(i * whole.t().dim(1) + first + j)];
  return part;
}

}  // namespace

TEST_CASE("vocabulary-parallel cross-entropy is cross_entropy, in any range") {
  const auto stream = make_stream(Device{});
  constexpr int64_t rows = 7, padded = 24, vocabulary = 17;
  std::vector<int32_t> labels{0, 16, 5, -1, 6, 11, 12};
  StepState state{};
  state.loss_scale = 4;
  for (const double scale : {1.0, 300.0})
    for (const int64_t shards : {1, 2, 3, 4, 8}) {
      const Numbers logits({rows, padded}, 3, scale);
      Numbers expected = logits, losses = zeros({rows});
      cross_entropy(*stream, Out(expected), {integers(labels), vocabulary},
                    LossGradient{0.25, &state}, Out(losses));
      const int64_t width = padded / shards;
      std::vector<Numbers> parts;
      Numbers all = zeros({shards, 3, rows});
      const auto columns = [&](int64_t s) {
        return VocabularyColumns{s * width, std::clamp<int64_t>(vocabulary - s * width, 0, width)};
      };
      for (int64_t s = 0; s < shards; ++s) {
        parts.push_back(columns_of(logits, s * width, width));
        cross_entropy_sums(*stream, parts.back(), {integers(labels), columns(s)},
                           Out(all.t().rows(s, 1).view({3, rows})));
      }
      for (int64_t s = 0; s < shards; ++s) {
        Numbers mine = zeros({rows});
        Numbers& part = parts[static_cast<size_t>(s)];
        cross_entropy_from_sums(*stream, {Out(part), {integers(labels), columns(s)}, all},
                                LossGradient{0.25, &state}, Out(mine));
        const Numbers wanted = columns_of(expected, s * width, width);
        INFO(shards, " shards, shard ", s);
        for (size_t i = 0; i < mine.size(); ++i)
          CHECK(mine[i] == doctest::Approx(losses[i]).epsilon(1e-12));
        for (size_t i = 0; i < part.size(); ++i)
          CHECK(std::abs(part[i] - wanted[i]) <= 1e-13 + 1e-12 * std::abs(wanted[i]));
      }
    }
}

TEST_CASE("vocabulary-parallel cross-entropy hides no NaN and no infinity") {
  const auto stream = make_stream(Device{});
  for (const double bad : {std::nan(""), std::numeric_limits<double>::infinity()})
    for (const size_t place : {1, 5}) {
      Numbers logits({1, 8}, 3);
      logits[place] = bad;
      std::vector<int32_t> labels{2};
      Numbers all = zeros({2, 3, 1}), loss = zeros({1});
      for (int64_t s = 0; s < 2; ++s)
        cross_entropy_sums(*stream, columns_of(logits, 4 * s, 4), {integers(labels), {4 * s, 4}},
                           Out(all.t().rows(s, 1).view({3, 1})));
      Numbers part = columns_of(logits, 0, 4);
      cross_entropy_from_sums(*stream, {Out(part), {integers(labels), {0, 4}}, all}, {}, Out(loss));
      CHECK_FALSE(std::isfinite(loss[0]));
    }
}

TEST_CASE("the rows of a divided embedding add up to the whole, under one mask") {
  const auto stream = make_stream(Device{});
  constexpr int64_t vocabulary = 12, columns = 5;
  std::vector<int32_t> values{0, 11, 3, 4, 3, 8};
  const Tensor ids(values.data(), DType::i32, {2, 3});
  const Numbers table({vocabulary, columns}, 4), dout({2, 3, columns}, 5);
  Numbers whole = zeros({2, 3, columns}), sum = whole, dwhole = zeros({vocabulary, columns});
  embedding_forward(*stream, {ids}, {table}, {0.3, 9}, Out(whole));
  embedding_backward(*stream, {ids}, dout, {0.3, 9}, {Out(dwhole)});
  for (const int64_t shards : {1, 2, 3, 4}) {
    const int64_t rows = vocabulary / shards;
    std::fill(sum.values().begin(), sum.values().end(), 0.0);
    for (int64_t s = 0; s < shards; ++s) {
      Numbers part = zeros({2, 3, columns}), dpart = zeros({rows, columns});
      const VocabularyPart place{s * rows, vocabulary};
      embedding_forward(*stream, {ids, {}, place}, {table.t().rows(s * rows, rows)}, {0.3, 9},
                        Out(part));
      embedding_backward(*stream, {ids, {}, place}, dout, {0.3, 9}, {Out(dpart)});
      for (size_t i = 0; i < sum.size(); ++i) sum[i] += part[i];
      for (size_t i = 0; i < dpart.size(); ++i)
        CHECK(dpart[i] == dwhole[static_cast<size_t>(s * rows * columns) + i]);
    }
    CHECK(sum.values() == whole.values());
  }
}

TEST_CASE("the addition alone has the mask of the addition with a norm") {
  const auto stream = make_stream(Device{});
  const Numbers x({4, 6}, 1), delta({4, 6}, 2), gamma({6}, 3), beta({6}, 4), dr({4, 6}, 5);
  Numbers r = zeros({4, 6}), y = r, alone = r, mean = zeros({4}), rstd = mean, ddelta = r;
  for (const double dropout : {0.0, 0.4}) {
    residual_layernorm_forward(*stream, {x, delta, {dropout, 7}}, {gamma, beta, 1e-5}, Out(r),
                               {Out(y), Out(mean), Out(rstd)});
    residual_forward(*stream, {x, delta, {dropout, 7}}, Out(alone));
    CHECK(alone.values() == r.values());
    apply_dropout(*stream, dr, {dropout, 7}, Out(ddelta));
    for (size_t i = 0; i < ddelta.size(); ++i) {
      const double factor = (r[i] - x[i]) / delta[i];
      CHECK(ddelta[i] == doctest::Approx(dr[i] * factor));
    }
  }
}
