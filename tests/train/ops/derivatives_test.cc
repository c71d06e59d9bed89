// Every backward pass against finite differences of its forward pass, in float64.
#include <doctest/doctest.h>

#include "src/ops/attention/attention.h"
#include "src/ops/embedding/embedding.h"
#include "src/ops/linear/linear.h"
#include "src/ops/loss/loss.h"
#include "src/ops/norm/norm.h"
#include "src/ops/rows/rows.h"
#include "tests/train/ops/numbers.h"

using namespace tally::train;

namespace {

constexpr double tolerance = 1e-8;

// `gradient` holds `before` plus the derivative of `loss` by x.
void check(Numbers& x, const std::function<double()>& loss, const Numbers& gradient,
           double before = 0) {
  std::vector<double> d = gradient.values();
  for (double& v : d) v -= before;
  CHECK(relative_error(d, finite_differences(x, loss)) < tolerance);
}

Numbers ones(std::initializer_list<int64_t> shape) {
  Numbers n = zeros(shape);
  for (double& v : n.values()) v = 1;
  return n;
}

struct Fixture {
  std::unique_ptr<Stream> stream = make_stream(Device{});
  Stream& s = *stream;
};

}  // namespace

TEST_CASE_FIXTURE(Fixture, "linear: input, weight and bias") {
  Numbers x({5, 7}, 1), w({3, 7}, 2), b({3}, 3), y = zeros({5, 3}), dy({5, 3}, 4);
  const auto loss = [&] {
    linear_forward(s, x, {w, b}, Out(y), {});
    return dot(y, dy);
  };
  Numbers dx = zeros({5, 7}), dw = ones({3, 7}), db = ones({3});
  linear_backward_input(s, dy, w, Out(dx), {});
  linear_backward_weight(s, dy, x, {Out(dw), Out(db)});
  check(x, loss, dx);
  check(w, loss, dw, 1);
  check(b, loss, db, 1);
}

TEST_CASE_FIXTURE(Fixture, "linear: the residual, overwritten weight gradients, bias sums") {
  const Numbers x({5, 7}, 1), w({4, 7}, 2), b({4}, 3), dy({5, 4}, 4), residual({5, 4}, 5);
  Numbers plain({5, 4}, 6), y({5, 4}, 7), sum = residual;
  linear_forward(*stream, x, {w, b}, Out(plain), {});
  linear_forward(*stream, x, {w, b}, Out(y), residual);
  linear_forward(*stream, x, {w, b}, Out(sum), sum);  // in its place
  for (size_t i = 0; i < y.size(); ++i) {
    CHECK(y[i] == doctest::Approx(plain[i] + residual[i]));
    CHECK(sum[i] == doctest::Approx(y[i]));
  }
  Numbers dw({4, 7}, 8), fresh = zeros({4, 7});
  linear_backward_weight(*stream, dy, x, {Out(dw), {}, false});
  linear_backward_weight(*stream, dy, x, {Out(fresh)});
  CHECK(dw.values() == fresh.values());

  Numbers db({2}, 9), dx({5, 7}, 10);
  const Numbers before = db;
  linear_backward_bias(*stream, dy, 1, Out(db));
  for (size_t j = 0; j < 2; ++j) {
    double want = before[j];
    for (size_t i = 0; i < 5; ++i) want += dy[i * 4 + 1 + j];
    CHECK(db[j] == doctest::Approx(want));
  }
  // The sums of dx = dy w follow from those of dy.
  Numbers sums = zeros({4}), bias = zeros({4}), through = zeros({7}), direct = zeros({7});
  linear_backward_bias(*stream, dy, 0, Out(sums));
  linear_backward_bias_input(*stream, sums, w, Out(bias), Out(through));
  linear_backward_input(*stream, dy, w, Out(dx), {});
  linear_backward_bias(*stream, dx, 0, Out(direct));
  CHECK(bias.values() == sums.values());
  for (size_t j = 0; j < 7; ++j) CHECK(through[j] == doctest::Approx(direct[j]));
}

TEST_CASE_FIXTURE(Fixture, "LayerNorm's backward pass sums the gradient of what was added") {
  const Numbers dy({6, 9}, 1), x({6, 9}, 2), gamma({9}, 3), beta({9}, 4), residual({6, 9}, 5);
  Numbers y({6, 9}, 6), mean({6}, 7), rstd({6}, 8);
  layernorm_forward(*stream, x, {gamma, beta, 1e-5}, {Out(y), Out(mean), Out(rstd)});
  for (const double dropout : {0.0, 0.4}) {
    Numbers dx({6, 9}, 9), ddelta({6, 9}, 10), dgamma = zeros({9}), dbeta = zeros({9});
    Numbers dbias = zeros({9}), want = zeros({9});
    layernorm_backward(*stream, {dy, x, gamma, mean, rstd, residual},
                       {Out(dx),
                        Out(dgamma),
                        Out(dbeta),
                        Out(dbias),
                        Out(dropout > 0 ? ddelta.t() : Tensor()),
                        {dropout, 3}});
    linear_backward_bias(*stream, dropout > 0 ? ddelta.t() : dx.t(), 0, Out(want));
    CHECK(dbias.values() == want.values());
  }
}

TEST_CASE_FIXTURE(Fixture, "linear after an activation: the gradient before it, in place too") {
  MlpActivation kind{};
  for (const MlpActivationEntry& entry : mlp_activations) {
    if (entry.gated) continue;
    SUBCASE(entry.name) {
      kind = entry.kind;
    }
  }
  Numbers x({6, 4}, 1), w1({5, 4}, 2), b1({5}, 3), w2({3, 5}, 4), dy({6, 3}, 5);
  Numbers pre = zeros({6, 5}), act = zeros({6, 5}), y = zeros({6, 3});
  const auto second = [&] {
    mlp_activation_forward(s, pre, Out(act), kind, {});
    linear_forward(s, act, {w2}, Out(y), {});
    return dot(y, dy);
  };
  const auto both = [&] {
    linear_activation_forward(s, x, {w1, b1}, {kind, SavedValue::input}, {Out(pre), Out(act)});
    linear_forward(s, act, {w2}, Out(y), {});
    return dot(y, dy);
  };
  both();
  Numbers dpre = zeros({6, 5}), db = ones({5});
  linear_backward_input_activation(s, dy, w2, {pre, {kind, SavedValue::input}},
                                   {Out(dpre), Out(db)});
  check(pre, second, dpre);
  check(b1, both, db, 1);
  both();
  Numbers in_place = pre;
  linear_backward_input_activation(s, dy, w2, {in_place, {kind, SavedValue::input}},
                                   {Out(in_place)});
  CHECK(in_place.values() == dpre.values());
  // Saving the derivative instead of the input leaves the same output and the same gradient.
  Numbers slope = zeros({6, 5}), same = zeros({6, 5}), from_slope = zeros({6, 5});
  linear_activation_forward(s, x, {w1, b1}, {kind, SavedValue::derivative},
                            {Out(slope), Out(same)});
  CHECK(same.values() == act.values());
  linear_backward_input_activation(s, dy, w2, {slope, {kind, SavedValue::derivative}},
                                   {Out(from_slope)});
  check(pre, second, from_slope);
  // The plain backward pass of the activation.
  both();
  Numbers dact = zeros({6, 5}), plain = zeros({6, 5});
  linear_backward_input(s, dy, w2, Out(dact), {});
  mlp_activation_backward(s, dact, pre, kind, {Out(plain), {}, {}});
  CHECK(relative_error(plain.values(), dpre.values()) < 1e-14);
  // mlp_activation_forward computes the activations of linear_activation_forward again.
  both();
  Numbers again = zeros({6, 5});
  mlp_activation_forward(s, pre, Out(again), kind, {});
  CHECK(again.values() == act.values());
}

TEST_CASE_FIXTURE(Fixture, "linear: an addend of the input's gradient") {
  const Numbers dy({5, 4}, 1), w({4, 7}, 2), addend({5, 7}, 3);
  Numbers plain({5, 7}, 4), dx({5, 7}, 5);
  linear_backward_input(s, dy, w, Out(plain), {});
  linear_backward_input(s, dy, w, Out(dx), addend);
  for (size_t i = 0; i < dx.size(); ++i) CHECK(dx[i] == doctest::Approx(plain[i] + addend[i]));
}

TEST_CASE_FIXTURE(Fixture, "chosen rows, rows of a table, activations") {
  std::vector<int32_t> chosen = {4, 0, 2}, types = {0, 1, 1, 0, 2};
  const Tensor rows(chosen.data(), DType::i32, {3}), ids(types.data(), DType::i32, {5});
  Numbers x({5, 6}, 1), out = zeros({3, 6}), dout({3, 6}, 2), dx = ones({5, 6});
  const auto gathered = [&] {
    gather_rows(s, x, rows, Out(out));
    return dot(out, dout);
  };
  add_to_rows(s, dout, rows, Out(dx));
  check(x, gathered, dx, 1);

  Numbers table({3, 6}, 3), dy({5, 6}, 4), dtable = ones({3, 6});
  const auto added = [&] {
    Numbers sum = x;
    add_embedding(s, ids, table, Out(sum));
    return dot(sum, dy);
  };
  check(x, added, dy);
  embedding_backward(s, {ids}, dy, {}, {Out(dtable)});
  check(table, added, dtable, 1);

  // Columns as rows over sequences: two of 2 and 1 tokens, and two tokens of none.
  std::vector<int32_t> begins = {0, 3}, sizes = {2, 1};
  const Tensor firsts(begins.data(), DType::i32, {2}), lengths(sizes.data(), DType::i32, {2});
  Numbers column({5, 2}, 5), across = zeros({2, 2, 3}), g({2, 2, 3}, 6), dcolumn({5, 2}, 7);
  for (const size_t beyond : {2UL, 4UL, 5UL, 8UL, 10UL, 11UL}) g[beyond] = 0;
  const auto turned = [&] {
    columns_to_rows(s, column, {firsts, lengths}, Out(across));
    for (double& v : across.values()) v = std::isinf(v) ? 0 : v;
    return dot(across, g);
  };
  rows_to_columns(s, g, {firsts, lengths}, Out(dcolumn));
  check(column, turned, dcolumn);
  columns_to_rows(s, column, {firsts, lengths}, Out(across));
  for (const size_t beyond : {2UL, 4UL, 5UL, 8UL, 10UL, 11UL}) CHECK(across[beyond] == -INFINITY);

  for (const Activation kind : {Activation::tanh, Activation::relu}) {
    Numbers y = zeros({5, 6}), din = zeros({5, 6});
    const auto activated = [&] {
      activation_forward(s, kind, x, Out(y));
      return dot(y, dy);
    };
    activated();
    activation_backward(s, kind, dy, y, Out(din));
    check(x, activated, din);
    activated();
    Numbers in_place = dy;
    activation_backward(s, kind, in_place, y, Out(in_place));
    CHECK(in_place.values() == din.values());
  }
}

TEST_CASE_FIXTURE(Fixture, "attention: queries, keys and values") {
  AttentionShape shape{2, 9, 3, 4, AttentionMask::causal, 0.5, 0};
  SUBCASE("causal") {}
  SUBCASE("both ways") {
    shape.mask = AttentionMask::none;
  }
  SUBCASE("dropout") {
    shape.dropout = 0.3;
  }
  SUBCASE("longer than a block of rows") {
    shape = {1, 131, 1, 2, AttentionMask::causal, 0.7, 0.1};
  }
  const int64_t b = shape.batch, t = shape.tokens, h = shape.heads, d = shape.head_dim;
  Numbers qkv({b, t, 3, h, d}, 1), out = zeros({b, t, h, d}), dout({b, t, h, d}, 2);
  Numbers stats = zeros({b, h, t}), dqkv({b, t, 3, h, d}, 3);
  const auto loss = [&] {
    attention_forward(s, packed_attention(shape, qkv, {Out(out), Out(stats)}, {}, 77));
    return dot(out, dout);
  };
  loss();
  attention_backward(s, packed_attention(shape, qkv, {Out(out), Out(stats)}, {}, 77),
                     packed_gradients(shape, dout, Out(dqkv)));
  check(qkv, loss, dqkv);
}

TEST_CASE_FIXTURE(Fixture, "rotary: its inverse is its transpose, values stay") {
  for (const double fraction : {1.0, 0.5}) {
    Numbers x({2, 5, 3, 2, 6}, 1), g({2, 5, 3, 2, 6}, 2);
    Numbers rotated = x, back = g;
    rotary_embedding(s, Out(rotated), {{}, 2, {100}, fraction}, false);
    rotary_embedding(s, Out(back), {{}, 2, {100}, fraction}, true);
    CHECK(std::abs(dot(rotated, g) - dot(x, back)) < 1e-12 * std::abs(dot(x, back)));
    Numbers round_trip = rotated;
    rotary_embedding(s, Out(round_trip), {{}, 2, {100}, fraction}, true);
    CHECK(relative_error(round_trip.values(), x.values()) < 1e-14);
    // Position 0 is not turned, and values never are; positions after it are.
    for (size_t row = 0; row < 10; ++row) {
      for (size_t i = 0; i < 36; ++i) {
        const size_t at = row * 36 + i;
        const bool turned = row % 5 != 0 && i < 24 && i % 6 < (fraction < 1 ? 2 : 6);
        CHECK((rotated[at] != x[at]) == turned);
      }
    }
  }
}

TEST_CASE_FIXTURE(Fixture, "LayerNorm, alone and after a residual addition") {
  const int64_t m = 5, c = 9;
  const double epsilon = 1e-3;
  Numbers x({m, c}, 1), delta({m, c}, 2), gamma({c}, 3), beta({c}, 4), dy({m, c}, 5), dr({m, c}, 6);
  Numbers r = zeros({m, c}), y = zeros({m, c}), mean = zeros({m}), rstd = zeros({m});
  Numbers dx = zeros({m, c}), dgamma = ones({c}), dbeta = ones({c}), ddelta = zeros({m, c});
  SUBCASE("alone") {
    const auto loss = [&] {
      layernorm_forward(s, x, {gamma, beta, epsilon}, {Out(y), Out(mean), Out(rstd)});
      return dot(y, dy);
    };
    loss();
    layernorm_backward(s, {dy, x, gamma, mean, rstd}, {Out(dx), Out(dgamma), Out(dbeta)});
    check(x, loss, dx);
    check(gamma, loss, dgamma, 1);
    check(beta, loss, dbeta, 1);
  }
  SUBCASE("after a residual addition with dropout") {
    // The sum is an output too: its gradient dr is added.
    const auto loss = [&] {
      residual_layernorm_forward(s, {x, delta, {0.4, 21}}, {gamma, beta, epsilon}, Out(r),
                                 {Out(y), Out(mean), Out(rstd)});
      return dot(y, dy) + dot(r, dr);
    };
    loss();
    layernorm_backward(s, {dy, r, gamma, mean, rstd, dr},
                       {Out(dx), Out(dgamma), Out(dbeta), {}, Out(ddelta), {0.4, 21}});
    check(x, loss, dx);
    check(delta, loss, ddelta);
    check(gamma, loss, dgamma, 1);
    check(beta, loss, dbeta, 1);
    // The residual's gradient may lie where the result goes.
    Numbers in_place = dr;
    layernorm_backward(s, {dy, r, gamma, mean, rstd, in_place},
                       {Out(in_place), Out(dgamma), Out(dbeta)});
    CHECK(in_place.values() == dx.values());
  }
}

TEST_CASE_FIXTURE(Fixture, "embeddings, with repeated tokens and dropout") {
  std::vector<int32_t> tokens = {3, 0, 3, 1, 3, 3, 4, 0};
  const Tensor ids(tokens.data(), DType::i32, {2, 4});
  Numbers wte({5, 6}, 1), wpe({7, 6}, 2), out = zeros({2, 4, 6}), dout({2, 4, 6}, 3);
  Numbers dwte = ones({5, 6}), dwpe = ones({7, 6});
  for (const double dropout : {0.0, 0.5}) {
    const auto loss = [&] {
      embedding_forward(s, {ids}, {wte, wpe}, {dropout, 8}, Out(out));
      return dot(out, dout);
    };
    Numbers a = dwte, b = dwpe;
    embedding_backward(s, {ids}, dout, {dropout, 8}, {Out(a), Out(b)});
    check(wte, loss, a, 1);
    check(wpe, loss, b, 1);
  }
  // Without positions.
  const auto loss = [&] {
    embedding_forward(s, {ids}, {wte}, {}, Out(out));
    return dot(out, dout);
  };
  embedding_backward(s, {ids}, dout, {}, {Out(dwte)});
  check(wte, loss, dwte, 1);
}

TEST_CASE_FIXTURE(Fixture, "cross-entropy: padding takes no part, negative targets do not count") {
  std::vector<int32_t> wanted = {2, -1, 0, 4, -100};
  const Tensor targets(wanted.data(), DType::i32, {5});
  Numbers logits({5, 8}, 1, 3), losses = zeros({5});
  StepState state{};
  state.loss_scale = 16;
  const double factor = 0.25;
  const auto loss = [&] {
    cross_entropy(s, Out(logits), {targets, 6}, {}, Out(losses));
    double sum = 0;
    add_losses(s, losses, factor, &sum);
    return 16 * sum;
  };
  Numbers gradient = logits;
  cross_entropy(s, Out(gradient), {targets, 6}, LossGradient{factor, &state}, Out(losses));
  check(logits, loss, gradient);
  CHECK(losses[1] == 0);
  CHECK(losses[4] == 0);
  for (size_t i = 0; i < 5; ++i) {
    for (size_t j = 0; j < 8; ++j) {
      if (j >= 6 || wanted[i] < 0) CHECK(gradient[i * 8 + j] == 0);
    }
  }
  // Huge logits stay finite.
  for (double& v : logits.values()) v *= 1e4;
  CHECK(std::isfinite(loss()));
}
