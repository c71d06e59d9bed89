// Operations against LibTorch's own, forward and through autograd, in float64.
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/rms_norm.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/silu.h>
#include <doctest/doctest.h>

#include "src/ops/attention/attention.h"
#include "src/ops/embedding/embedding.h"
#include "src/ops/linear/linear.h"
#include "src/ops/loss/loss.h"
#include "src/ops/norm/norm.h"
#include "src/ops/rows/rows.h"
#include "src/ops/swiglu/swiglu.h"
#include "tests/train/ops/numbers.h"

using namespace tally::train;

namespace {

constexpr double tolerance = 1e-12;

at::Tensor view(const Tensor& t) {
  return at::from_blob(t.data, at::IntArrayRef(t.shape.data(), static_cast<size_t>(t.rank)),
                       at::TensorOptions().dtype(t.dtype == DType::i32 ? at::kInt : at::kDouble));
}
at::Tensor leaf(const Numbers& n) {
  return view(n).clone().requires_grad_(true);
}

void same(const Numbers& ours, const at::Tensor& theirs) {
  const at::Tensor flat = theirs.detach().contiguous();
  const double* data = flat.data_ptr<double>();
  CHECK(relative_error(ours.values(), std::vector<double>(data, data + flat.numel())) < tolerance);
}

}  // namespace

TEST_CASE("linear and GELU") {
  auto stream = make_stream(Device{});
  Stream& s = *stream;
  Numbers x({11, 7}, 1), w1({9, 7}, 2), b1({9}, 3), w2({5, 9}, 4), b2({5}, 5), dy({11, 5}, 6);
  Numbers pre = zeros({11, 9}), act = pre, y = zeros({11, 5}), dpre = pre, dx = zeros({11, 7});
  Numbers dw1 = zeros({9, 7}), db1 = zeros({9}), dw2 = zeros({5, 9}), db2 = zeros({5});
  MlpActivation kind = MlpActivation::gelu_tanh;
  SUBCASE("tanh") {}
  SUBCASE("erf") {
    kind = MlpActivation::gelu_erf;
  }
  const char* theirs = kind == MlpActivation::gelu_tanh ? "tanh" : "none";
  linear_activation_forward(s, x, {w1, b1}, {kind, SavedValue::input}, {Out(pre), Out(act)});
  linear_forward(s, act, {w2, b2}, Out(y), {});
  linear_backward_weight(s, dy, act, {Out(dw2), Out(db2)});
  linear_backward_input_activation(s, dy, w2, {pre, {kind, SavedValue::input}},
                                   {Out(dpre), Out(db1)});
  linear_backward_weight(s, dpre, x, {Out(dw1)});
  linear_backward_input(s, dpre, w1, Out(dx), {});
  const at::Tensor tx = leaf(x), tw1 = leaf(w1), tb1 = leaf(b1), tw2 = leaf(w2), tb2 = leaf(b2);
  const at::Tensor ty = at::linear(at::gelu(at::linear(tx, tw1, tb1), theirs), tw2, tb2);
  ty.backward(view(dy));
  same(y, ty);
  same(dx, tx.grad());
  same(dw1, tw1.grad());
  same(db1, tb1.grad());
  same(dw2, tw2.grad());
  same(db2, tb2.grad());
}

TEST_CASE("attention") {
  auto stream = make_stream(Device{});
  Stream& s = *stream;
  for (const bool causal : {true, false}) {
    const AttentionMask mask = causal ? AttentionMask::causal : AttentionMask::none;
    const AttentionShape shape{2, 150, 3, 20, mask, 1 / std::sqrt(20.0), 0};
    Numbers qkv({2, 150, 3, 3, 20}, 1), dout({2, 150, 3, 20}, 2), out = zeros({2, 150, 3, 20});
    Numbers stats = zeros({2, 3, 150}), dqkv = zeros({2, 150, 3, 3, 20});
    attention_forward(s, packed_attention(shape, qkv, {Out(out), Out(stats)}, {}, 0));
    Numbers q_sums({60}, 3);
    const Numbers before = q_sums;
    attention_backward(s, packed_attention(shape, qkv, {Out(out), Out(stats)}, {}, 0),
                       packed_gradients(shape, dout, Out(dqkv), Out(q_sums)));
    const at::Tensor t = leaf(qkv);
    const auto part = [&](int64_t i) { return t.select(2, i).transpose(1, 2); };
    const at::Tensor to =
        at::scaled_dot_product_attention(part(0), part(1), part(2), {}, 0.0, causal)
            .transpose(1, 2);
    to.backward(view(dout));
    same(out, to);
    same(dqkv, t.grad());
    // Q's bias has the column sums of Q's gradient.
    for (size_t i = 0; i < q_sums.size(); ++i) q_sums[i] -= before[i];
    same(q_sums, t.grad().select(2, 0).sum(at::IntArrayRef({0, 1})));
  }
}

TEST_CASE("attention of grouped queries") {
  auto stream = make_stream(Device{});
  Stream& s = *stream;
  for (const int64_t groups : {1, 2, 3, 6}) {
    AttentionShape shape{2, 150, 6, 20, AttentionMask::causal, 1 / std::sqrt(20.0), 0};
    shape.groups = groups;
    const int64_t rows = 6 + 2 * groups;
    Numbers qkv({2, 150, rows, 20}, 1), dout({2, 150, 6, 20}, 2), out = zeros({2, 150, 6, 20});
    Numbers stats = zeros({2, 6, 150}), dqkv = zeros({2, 150, rows, 20});
    attention_forward(s, packed_attention(shape, qkv, {Out(out), Out(stats)}, {}, 0));
    attention_backward(s, packed_attention(shape, qkv, {Out(out), Out(stats)}, {}, 0),
                       packed_gradients(shape, dout, Out(dqkv)));
    const at::Tensor t = leaf(qkv);
    const auto part = [&](int64_t first, int64_t count) {
      return t.narrow(2, first, count).transpose(1, 2);
    };
    const at::Tensor to =
        at::scaled_dot_product_attention(part(0, 6), part(6, groups), part(6 + groups, groups), {},
                                         0.0, true, {}, true)
            .transpose(1, 2);
    to.backward(view(dout));
    same(out, to);
    same(dqkv, t.grad());
  }
}

TEST_CASE("SwiGLU") {
  auto stream = make_stream(Device{});
  Stream& s = *stream;
  Numbers h({13, 66}, 1), dy({13, 33}, 2), y = zeros({13, 33}), dh = zeros({13, 66});
  swiglu_forward(s, h, Out(y), {});
  swiglu_backward(s, dy, h, Out(dh), {});
  const at::Tensor t = leaf(h);
  const at::Tensor ty = at::silu(t.narrow(1, 0, 33)) * t.narrow(1, 33, 33);
  ty.backward(view(dy));
  same(y, ty);
  same(dh, t.grad());
  swiglu_backward(s, dy, h, Out(h), {});  // in place
  CHECK(h.values() == dh.values());
}

TEST_CASE("residual RMSNorm") {
  auto stream = make_stream(Device{});
  Stream& s = *stream;
  Numbers x({13, 33}, 1), delta({13, 33}, 2), gamma({33}, 3), dy({13, 33}, 5);
  Numbers dr({13, 33}, 6), r = zeros({13, 33}), y = r, dx = r, rstd = zeros({13});
  Numbers dgamma = zeros({33});
  const Tensor none;
  residual_layernorm_forward(s, {x, delta}, {gamma, none, 1e-5}, Out(r),
                             {Out(y), Out(none), Out(rstd)});
  layernorm_backward(s, {dy, r, gamma, none, rstd, dr}, {Out(dx), Out(dgamma)});
  const at::Tensor tx = leaf(x), tg = leaf(gamma), tr = tx + view(delta);
  const at::Tensor ty = at::rms_norm(tr, {33}, tg, 1e-5);
  ((ty * view(dy)).sum() + (tr * view(dr)).sum()).backward();
  same(y, ty);
  same(dx, tx.grad());
  same(dgamma, tg.grad());
  Numbers alone = zeros({13, 33});
  layernorm_forward(s, r, {gamma, none, 1e-5}, {Out(alone), Out(none), Out(rstd)});
  CHECK(alone.values() == y.values());
}

TEST_CASE("residual LayerNorm") {
  auto stream = make_stream(Device{});
  Stream& s = *stream;
  Numbers x({13, 33}, 1), delta({13, 33}, 2), gamma({33}, 3), beta({33}, 4), dy({13, 33}, 5);
  Numbers dr({13, 33}, 6), r = zeros({13, 33}), y = r, dx = r, mean = zeros({13}), rstd = mean;
  Numbers dgamma = zeros({33}), dbeta = dgamma;
  residual_layernorm_forward(s, {x, delta}, {gamma, beta, 1e-5}, Out(r),
                             {Out(y), Out(mean), Out(rstd)});
  layernorm_backward(s, {dy, r, gamma, mean, rstd, dr}, {Out(dx), Out(dgamma), Out(dbeta)});
  const at::Tensor tx = leaf(x), tg = leaf(gamma), tb = leaf(beta);
  const at::Tensor tr = tx + view(delta);
  const at::Tensor ty = at::layer_norm(tr, {33}, tg, tb, 1e-5);
  ((ty * view(dy)).sum() + (tr * view(dr)).sum()).backward();
  same(y, ty);
  same(dx, tx.grad());
  same(dgamma, tg.grad());
  same(dbeta, tb.grad());
}

TEST_CASE("embeddings and cross-entropy") {
  auto stream = make_stream(Device{});
  Stream& s = *stream;
  std::vector<int32_t> tokens(30), wanted(30);
  for (size_t i = 0; i < tokens.size(); ++i) {
    tokens[i] = static_cast<int32_t>(i * 7 % 13);
    wanted[i] = i % 6 == 0 ? -1 : static_cast<int32_t>(i * 5 % 17);
  }
  const Tensor ids(tokens.data(), DType::i32, {3, 10}), targets(wanted.data(), DType::i32, {30});
  Numbers wte({13, 20}, 1), wpe({10, 20}, 2), out = zeros({3, 10, 20}), losses = zeros({30});
  Numbers dwte = zeros({13, 20}), dwpe = zeros({10, 20});
  embedding_forward(s, {ids}, {wte, wpe}, {}, Out(out));
  const at::Tensor te = leaf(wte), tp = leaf(wpe);
  const at::Tensor to = at::embedding(te, view(ids).to(at::kLong)) + tp;
  same(out, to);
  // The loss takes the embeddings themselves as logits.
  Numbers logits = out;
  cross_entropy(s, Out(logits.t().view({30, 20})), {targets, 17}, LossGradient{0.125}, Out(losses));
  embedding_backward(s, {ids}, logits, {}, {Out(dwte), Out(dwpe)});
  const at::Tensor loss = at::cross_entropy_loss(
      to.view({30, 20}).narrow(1, 0, 17), view(targets).to(at::kLong), {}, at::Reduction::None, -1);
  (loss.sum() * 0.125).backward();
  same(losses, loss);
  same(dwte, te.grad());
  same(dwpe, tp.grad());
}

TEST_CASE("fused linear cross-entropy") {
  auto stream = make_stream(Device{});
  Stream& s = *stream;
  std::vector<int32_t> wanted(30);
  for (size_t i = 0; i < wanted.size(); ++i)
    wanted[i] = i % 6 == 0 ? -1 - static_cast<int32_t>(i) : static_cast<int32_t>(i * 5 % 17);
  const Tensor labels(wanted.data(), DType::i32, {30});
  // Two tokens are like column 15, by hundreds: it is the label of token 3 and not of token 7.
  Numbers x({30, 12}, 1), w({20, 12}, 2), losses = zeros({30}), scales = losses,
                                          dx = zeros({30, 12});
  for (size_t c = 0; c < 12; ++c) {
    x[size_t{3} * 12 + c] = 30 * w[size_t{15} * 12 + c];
    x[size_t{7} * 12 + c] = 6 * w[size_t{15} * 12 + c];
  }
  Numbers e({30, 20}, 3), dw({20, 12}, 4);
  StepState state{};
  state.loss_scale = 4;
  const at::Tensor tx = leaf(x), tw = leaf(w);
  REQUIRE(
      linear_cross_entropy_pays(s, {Out(x), w, {labels, 17}}, {Out(losses), Out(scales), Out(e)}));
  linear_cross_entropy(s, {Out(x), w, {labels, 17}}, {0.125, &state},
                       {Out(losses), Out(scales), Out(e)});
  linear_backward_weight(s, e, x, {Out(dw), {}, false});
  linear_backward_input(s, e, w, Out(dx), {});
  scale_rows(s, scales, Out(dx));
  const at::Tensor loss =
      at::cross_entropy_loss(at::linear(tx, tw).narrow(1, 0, 17),
                             view(labels).to(at::kLong).clamp_min(-1), {}, at::Reduction::None, -1);
  (loss.sum() * 0.5).backward();
  CHECK(losses[3] < 1e-30);
  CHECK(losses[7] > 15);
  same(losses, loss);
  same(dx, tx.grad());
  same(dw, tw.grad());
  for (size_t i = 0; i < e.size(); ++i) {
    if (i % 20 >= 17) CHECK(e[i] == 0);
  }
  // Logits of hundreds, positive and negative, are exact; NaNs and infinities are preserved.
  for (size_t c = 0; c < 12; ++c) x[size_t{7} * 12 + c] = 100 * w[size_t{15} * 12 + c];
  const Numbers far = x;
  const at::Tensor fx = leaf(far), fw = leaf(w);
  linear_cross_entropy(s, {Out(x), w, {labels, 17}}, {0.125, &state},
                       {Out(losses), Out(scales), Out(e)});
  linear_backward_weight(s, e, x, {Out(dw), {}, false});
  linear_backward_input(s, e, w, Out(dx), {});
  scale_rows(s, scales, Out(dx));
  const at::Tensor far_loss =
      at::cross_entropy_loss(at::linear(fx, fw).narrow(1, 0, 17),
                             view(labels).to(at::kLong).clamp_min(-1), {}, at::Reduction::None, -1);
  (far_loss.sum() * 0.5).backward();
  CHECK(losses[7] > 300);
  same(losses, far_loss);
  same(dx, fx.grad());
  same(dw, fw.grad());
  for (const double bad : {std::nan(""), HUGE_VAL}) {
    Numbers spoilt = far;
    spoilt[size_t{8} * 12] = bad;
    linear_cross_entropy(s, {Out(spoilt), w, {labels, 17}}, {0.125, &state},
                         {Out(losses), Out(scales), Out(e)});
    for (size_t i = 0; i < losses.size(); ++i) CHECK(std::isnan(losses[i]) == (i == 8));
  }
}
