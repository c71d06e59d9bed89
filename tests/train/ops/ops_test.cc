// Streams, masks, conversions, and 16-bit and 32-bit operations against float64.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "src/device/philox.h"
#include "src/ops/attention/attention.h"
#include "src/ops/embedding/embedding.h"
#include "src/ops/linear/linear.h"
#include "src/ops/loss/loss.h"
#include "src/ops/norm/norm.h"
#include "src/ops/swiglu/swiglu.h"
#include "tests/train/ops/numbers.h"

using namespace tally::train;

TEST_CASE("CPU stream: memory is aligned, counted and given back") {
  auto s = make_stream(Device{});
  CHECK_FALSE(s->device().is_cuda());
  CHECK(s->native() == nullptr);
  void* a = s->allocate(1, "a");
  void* b = s->allocate(1000, "b");
  CHECK(reinterpret_cast<uintptr_t>(a) % 256 == 0);
  CHECK(reinterpret_cast<uintptr_t>(b) % 256 == 0);
  CHECK(s->allocations() == 2);
  CHECK(s->bytes_allocated() == 256 + 1024);
  s->release(b);
  s->release(nullptr);
  CHECK(s->bytes_allocated() == 256);
  CHECK(s->bytes_peak() == 256 + 1024);
  CHECK(s->allocations() == 2);
  CHECK_THROWS_AS(s->allocate(size_t{1} << 60, "too much"), OutOfMemory);
  try {
    s->allocate(~size_t{0} - 3, "everything");
  } catch (const OutOfMemory& e) {
    CHECK(std::string(e.what()).find("everything") != std::string::npos);
  }
}

TEST_CASE("device information of the CPU") {
  const DeviceInfo info = device_info(Device{});
  CHECK_FALSE(info.name.empty());
  CHECK(info.total_bytes > 0);
  CHECK(info.sms >= 1);
  if (cuda_device_count() == 0) {
    CHECK_FALSE(cuda_unavailable_reason().empty());
    CHECK_THROWS_AS(make_stream(Device{DeviceKind::cuda, 0}), DeviceError);
  }
}

// Salmon et al., Random123's known-answer file, philox4x32 with 10 rounds.
TEST_CASE("Philox 4x32-10 gives Random123's known answers") {
  const Philox4 zero = philox(0, 0, 0);
  CHECK(zero.word[0] == 0x6627e8d5);
  CHECK(zero.word[1] == 0xe169c58d);
  CHECK(zero.word[2] == 0xbc57ac4c);
  CHECK(zero.word[3] == 0x9b00dbd8);
  const Philox4 all = philox(~0ull, ~0ull, ~0ull);
  CHECK(all.word[0] == 0x408f276d);
  CHECK(all.word[1] == 0x41c83b0e);
  CHECK(all.word[2] == 0xa20bc7c6);
  CHECK(all.word[3] == 0x6d5451fd);
  const Philox4 pi = philox(0x299f31d0a4093822ull, 0x85a308d3243f6a88ull, 0x0370734413198a2eull);
  CHECK(pi.word[0] == 0xd16cfe09);
  CHECK(pi.word[1] == 0x94fdcceb);
  CHECK(pi.word[2] == 0x5001e420);
  CHECK(pi.word[3] == 0x24126ea1);
}

TEST_CASE("Philox 4x32-7, which dropout takes, gives Random123's known answers") {
  const Philox4 zero = philox<7>(0, 0, 0);
  CHECK(zero.word[0] == 0x5f6fb709);
  CHECK(zero.word[1] == 0x0d893f64);
  CHECK(zero.word[2] == 0x4f121f81);
  CHECK(zero.word[3] == 0x4f730a48);
  const Philox4 pi = philox<7>(0x299f31d0a4093822ull, 0x85a308d3243f6a88ull, 0x0370734413198a2eull);
  CHECK(pi.word[0] == 0x4dfccaba);
  CHECK(pi.word[1] == 0x190a87f0);
  CHECK(pi.word[2] == 0xc47362ba);
  CHECK(pi.word[3] == 0xb6b5242a);
  CHECK(dropout_draw(0x299f31d0a4093822ull, 7).word[2] ==
        philox<7>(0x299f31d0a4093822ull, 7).word[2]);
}

TEST_CASE("dropout keeps the share it should and scales the rest") {
  const int64_t n = 200000;
  std::vector<float> mask(static_cast<size_t>(n));
  for (const double p : {0.1, 0.5, 0.9}) {
    dropout_mask(p, 42, Tensor(mask.data(), DType::f32, {n}));
    int64_t kept = 0;
    bool as_predicted = true;
    for (size_t i = 0; i < mask.size(); ++i) {
      kept += mask[i] != 0;
      const bool keep = dropout_keeps(42, i, dropout_threshold(p));
      as_predicted &= mask[i] == (keep ? static_cast<float>(dropout_scale(p)) : 0.0F);
    }
    CHECK(as_predicted);
    // The probability is rounded to 16 bits, the mean is not: to float64's last bits.
    CHECK(dropout_scale(p) * (65536 - dropout_threshold(p)) ==
          doctest::Approx(65536).epsilon(1e-15));
    CHECK(std::abs(dropout_threshold(p) / 65536.0 - p) <= 0.5 / 65536);
    // Five standard deviations.
    CHECK(std::abs(static_cast<double>(kept) / n - (1 - p)) < 5 * std::sqrt(p * (1 - p) / n));
  }
  CHECK(site_seed(1, 2) != site_seed(2, 1));
  CHECK(site_seed(0, 0) != 0);
}

TEST_CASE("conversions round to nearest even") {
  std::vector<double> from = {1.0, 1 + 0x1p-8, 1 + 0x3p-8, 1e30, -0.0, 65520.0, 1 + 0x1p-24};
  std::vector<uint16_t> bits(from.size());
  const Tensor source(from.data(), DType::f64, {7});
  convert_elements(source, Tensor(bits.data(), DType::bf16, {7}));
  CHECK(bits[0] == 0x3f80);
  CHECK(bits[1] == 0x3f80);  // a tie, to even
  CHECK(bits[2] == 0x3f82);  // a tie, to even
  CHECK(bits[4] == 0x8000);
  convert_elements(source, Tensor(bits.data(), DType::f16, {7}));
  CHECK(bits[0] == 0x3c00);
  CHECK(bits[3] == 0x7c00);
  CHECK(bits[5] == 0x7c00);
  std::vector<float> floats(from.size());
  convert_elements(source, Tensor(floats.data(), DType::f32, {7}));
  CHECK(floats[6] == 1.0F);
  CHECK_THROWS_AS(convert_elements(source, Tensor(floats.data(), DType::f32, {6})),
                  std::invalid_argument);
  CHECK_THROWS_AS(convert_elements(source, Tensor(floats.data(), DType::i32, {7})),
                  std::invalid_argument);
}

namespace {

struct Precision {
  DType type;
  double tolerance;
};
const Precision precisions[] = {{DType::f32, 2e-6}, {DType::bf16, 1e-2}, {DType::f16, 2e-3}};
DType wide(DType t) {
  return t == DType::f64 ? t : DType::f32;
}

// Rounds the numbers to the type, so that both sides start from the same.
Numbers rounded(Numbers n, DType type) {
  n.values() = Rounded(n, type).get();
  return n;
}

}  // namespace

TEST_CASE("linear in f32, bf16 and f16 equals float64 to their precision") {
  auto stream = make_stream(Device{});
  Stream& s = *stream;
  for (const auto& precision : precisions) {
    const auto [type, tolerance] = precision;
    CAPTURE(dtype_name(precision.type));
    const Numbers x = rounded(Numbers({33, 20}, 1), type), w = rounded(Numbers({12, 20}, 2), type);
    const Numbers b = rounded(Numbers({12}, 3), type), dy = rounded(Numbers({33, 12}, 4), type);
    Numbers pre = zeros({33, 12}), y = zeros({33, 12}), dx = zeros({33, 20}), dw = zeros({12, 20});
    Numbers db = zeros({12});
    linear_activation_forward(s, x, {w, b}, {}, {Out(pre), Out(y)});
    linear_backward_input(s, dy, w, Out(dx), {});
    linear_backward_weight(s, dy, x, {Out(dw), Out(db)});
    const Rounded x1(x, type), w1(w, type), b1(b, type), dy1(dy, type), zero(zeros({33, 12}), type);
    const Rounded pre1(zeros({33, 12}), type), y1(zeros({33, 12}), type);
    const Rounded dx1(zeros({33, 20}), type), dw1(zeros({12, 20}), wide(type));
    const Rounded db1(zeros({12}), wide(type));
    linear_activation_forward(s, x1, {w1, b1}, {}, {Out(pre1), Out(y1)});
    linear_backward_input(s, dy1, w1, Out(dx1), {});
    linear_backward_weight(s, dy1, x1, {Out(dw1), Out(db1)});
    CHECK(relative_error(pre1.get(), pre.values()) < tolerance);
    CHECK(relative_error(y1.get(), y.values()) < tolerance);
    CHECK(relative_error(dx1.get(), dx.values()) < tolerance);
    // Gradients of parameters are kept in f32 whatever the type.
    CHECK(relative_error(dw1.get(), dw.values()) < 2e-6);
    CHECK(relative_error(db1.get(), db.values()) < 2e-6);
  }
}

TEST_CASE("attention and rotary in f32, bf16 and f16 equal float64 to their precision") {
  auto stream = make_stream(Device{});
  Stream& s = *stream;
  const AttentionShape shape{2, 45, 2, 20, AttentionMask::causal, 1 / std::sqrt(20.0), 0.1};
  for (const auto& precision : precisions) {
    const auto [type, tolerance] = precision;
    CAPTURE(dtype_name(precision.type));
    const Numbers qkv = rounded(Numbers({2, 45, 3, 2, 20}, 1), type);
    const Numbers dout = rounded(Numbers({2, 45, 2, 20}, 2), type);
    Numbers rotated = qkv, out = zeros({2, 45, 2, 20}), stats = zeros({2, 2, 45});
    Numbers dqkv = zeros({2, 45, 3, 2, 20});
    rotary_embedding(s, Out(rotated), {{}, 2, {10000}, 1}, false);
    attention_forward(s, packed_attention(shape, rotated, {Out(out), Out(stats)}, {}, 3));
    attention_backward(s, packed_attention(shape, rotated, {Out(out), Out(stats)}, {}, 3),
                       packed_gradients(shape, dout, Out(dqkv)));
    const Rounded qkv1(qkv, type), out1(zeros({2, 45, 2, 20}), type), dout1(dout, type);
    const Rounded stats1(zeros({2, 2, 45}), wide(type)), dqkv1(zeros({2, 45, 3, 2, 20}), type);
    rotary_embedding(s, Out(qkv1), {{}, 2, {10000}, 1}, false);
    attention_forward(s, packed_attention(shape, qkv1, {Out(out1), Out(stats1)}, {}, 3));
    attention_backward(s, packed_attention(shape, qkv1, {Out(out1), Out(stats1)}, {}, 3),
                       packed_gradients(shape, dout1, Out(dqkv1)));
    CHECK(relative_error(qkv1.get(), rotated.values()) < tolerance);
    CHECK(relative_error(out1.get(), out.values()) < tolerance);
    CHECK(relative_error(stats1.get(), stats.values()) < tolerance);
    CHECK(relative_error(dqkv1.get(), dqkv.values()) < 2 * tolerance);
  }
}

TEST_CASE("LayerNorm, embeddings and loss in f32, bf16 and f16 equal float64 to their precision") {
  auto stream = make_stream(Device{});
  Stream& s = *stream;
  std::vector<int32_t> tokens(24);
  for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<int32_t>(i * i % 11);
  const Tensor ids(tokens.data(), DType::i32, {2, 12}), targets = ids.view({24});
  for (const auto& precision : precisions) {
    const auto [type, tolerance] = precision;
    CAPTURE(dtype_name(precision.type));
    const DType w = wide(type);
    const Numbers wte = rounded(Numbers({11, 30}, 1), type);
    const Numbers wpe = rounded(Numbers({12, 30}, 2), type);
    const Numbers delta = rounded(Numbers({24, 30}, 3), type);
    const Numbers gamma = rounded(Numbers({30}, 4), type), beta = rounded(Numbers({30}, 5), type);
    const Numbers dy = rounded(Numbers({24, 30}, 6), type);
    StepState state{};
    state.loss_scale = 8;

    Numbers x = zeros({24, 30}), r = x, y = x, dx = x, mean = zeros({24}), rstd = mean;
    Numbers dgamma = zeros({30}), dbeta = dgamma, losses = mean, logits = dy;
    embedding_forward(s, {ids}, {wte, wpe}, {0.1, 9}, Out(x));
    residual_layernorm_forward(s, {x, delta, {0.1, 7}}, {gamma, beta, 1e-5}, Out(r),
                               {Out(y), Out(mean), Out(rstd)});
    layernorm_backward(s, {dy, r, gamma, mean, rstd}, {Out(dx), Out(dgamma), Out(dbeta)});
    cross_entropy(s, Out(logits), {targets, 27}, LossGradient{1, &state}, Out(losses));

    const Rounded wte1(wte, type), wpe1(wpe, type), delta1(delta, type), gamma1(gamma, type);
    const Rounded beta1(beta, type), dy1(dy, type), x1(zeros({24, 30}), type), logits1(dy, type);
    const Rounded r1(zeros({24, 30}), type), y1(zeros({24, 30}), type), dx1(zeros({24, 30}), type);
    const Rounded mean1(zeros({24}), w), rstd1(zeros({24}), w), losses1(zeros({24}), w);
    const Rounded dgamma1(zeros({30}), w), dbeta1(zeros({30}), w);
    embedding_forward(s, {ids}, {wte1, wpe1}, {0.1, 9}, Out(x1));
    residual_layernorm_forward(s, {x1, delta1, {0.1, 7}}, {gamma1, beta1, 1e-5}, Out(r1),
                               {Out(y1), Out(mean1), Out(rstd1)});
    layernorm_backward(s, {dy1, r1, gamma1, mean1, rstd1}, {Out(dx1), Out(dgamma1), Out(dbeta1)});
    cross_entropy(s, Out(logits1), {targets, 27}, LossGradient{1, &state}, Out(losses1));
    CHECK(relative_error(x1.get(), x.values()) < tolerance);
    CHECK(relative_error(r1.get(), r.values()) < tolerance);
    CHECK(relative_error(y1.get(), y.values()) < tolerance);
    CHECK(relative_error(rstd1.get(), rstd.values()) < tolerance);
    CHECK(relative_error(dx1.get(), dx.values()) < 2 * tolerance);
    CHECK(relative_error(dgamma1.get(), dgamma.values()) < tolerance);
    CHECK(relative_error(dbeta1.get(), dbeta.values()) < 1e-5);
    CHECK(relative_error(losses1.get(), losses.values()) < 2e-6);
    CHECK(relative_error(logits1.get(), logits.values()) < tolerance);
  }
}

TEST_CASE("labels that are predicted: the first of the largest logits") {
  auto stream = make_stream(Device{});
  const float nan = std::numeric_limits<float>::quiet_NaN();
  // Five tokens of a vocabulary of three, and a column of padding.
  const std::vector<float> logits = {1, 3, 2,   9,   // 1
                                     3, 3, 2,   9,   // 0: the first of two
                                     3, 3, 2,   9,   // not 1
                                     3, 1, nan, 9,   // none
                                     1, 2, 3,   9};  // does not count
  const std::vector<int32_t> labels = {1, 0, 1, 0, -1};
  double correct = 10;
  add_correct(*stream, Tensor(const_cast<float*>(logits.data()), DType::f32, {5, 4}),
              {Tensor(const_cast<int32_t*>(labels.data()), DType::i32, {5}), 3}, &correct);
  CHECK(correct == 12);
}

TEST_CASE("narrow types: RMSNorm, SwiGLU and grouped queries") {
  auto stream = make_stream(Device{});
  Stream& s = *stream;
  AttentionShape shape{2, 45, 4, 20, AttentionMask::causal, 1 / std::sqrt(20.0), 0.1};
  shape.groups = 2;
  const Tensor none;
  for (const auto& precision : precisions) {
    const auto [type, tolerance] = precision;
    CAPTURE(dtype_name(precision.type));
    const DType w = wide(type);
    const Numbers x = rounded(Numbers({24, 30}, 1), type),
                  delta = rounded(Numbers({24, 30}, 2), type);
    const Numbers gamma = rounded(Numbers({30}, 3), type), dy = rounded(Numbers({24, 30}, 4), type);
    Numbers r = zeros({24, 30}), y = r, dx = r, rstd = zeros({24}), dgamma = zeros({30});
    residual_layernorm_forward(s, {x, delta, {0.1, 7}}, {gamma, none, 1e-5}, Out(r),
                               {Out(y), Out(none), Out(rstd)});
    layernorm_backward(s, {dy, r, gamma, none, rstd, none}, {Out(dx), Out(dgamma)});
    const Rounded x1(x, type), delta1(delta, type), gamma1(gamma, type), dy1(dy, type);
    const Rounded r1(zeros({24, 30}), type), y1(zeros({24, 30}), type), dx1(zeros({24, 30}), type);
    const Rounded rstd1(zeros({24}), w), dgamma1(zeros({30}), w);
    residual_layernorm_forward(s, {x1, delta1, {0.1, 7}}, {gamma1, none, 1e-5}, Out(r1),
                               {Out(y1), Out(none), Out(rstd1)});
    layernorm_backward(s, {dy1, r1, gamma1, none, rstd1, none}, {Out(dx1), Out(dgamma1)});
    CHECK(relative_error(y1.get(), y.values()) < tolerance);
    CHECK(relative_error(dx1.get(), dx.values()) < 2 * tolerance);
    CHECK(relative_error(dgamma1.get(), dgamma.values()) < tolerance);

    Numbers act = zeros({24, 15}), dh = zeros({24, 30});
    const Numbers dact = rounded(Numbers({24, 15}, 5), type);
    swiglu_forward(s, x, Out(act), {});
    swiglu_backward(s, dact, x, Out(dh), {});
    const Rounded act1(zeros({24, 15}), type), dact1(dact, type), dh1(zeros({24, 30}), type);
    swiglu_forward(s, x1, Out(act1), {});
    swiglu_backward(s, dact1, x1, Out(dh1), {});
    CHECK(relative_error(act1.get(), act.values()) < tolerance);
    CHECK(relative_error(dh1.get(), dh.values()) < tolerance);

    const Numbers qkv = rounded(Numbers({2, 45, 8, 20}, 6), type);
    const Numbers dout = rounded(Numbers({2, 45, 4, 20}, 7), type);
    Numbers out = zeros({2, 45, 4, 20}), stats = zeros({2, 4, 45}), dqkv = zeros({2, 45, 8, 20});
    attention_forward(s, packed_attention(shape, qkv, {Out(out), Out(stats)}, Out(none), 3));
    attention_backward(s, packed_attention(shape, qkv, {Out(out), Out(stats)}, Out(none), 3),
                       packed_gradients(shape, dout, Out(dqkv)));
    const Rounded qkv1(qkv, type), out1(zeros({2, 45, 4, 20}), type), dout1(dout, type);
    const Rounded stats1(zeros({2, 4, 45}), w), dqkv1(zeros({2, 45, 8, 20}), type);
    attention_forward(s, packed_attention(shape, qkv1, {Out(out1), Out(stats1)}, Out(none), 3));
    attention_backward(s, packed_attention(shape, qkv1, {Out(out1), Out(stats1)}, Out(none), 3),
                       packed_gradients(shape, dout1, Out(dqkv1)));
    CHECK(relative_error(out1.get(), out.values()) < tolerance);
    CHECK(relative_error(dqkv1.get(), dqkv.values()) < 2 * tolerance);
  }
}

TEST_CASE("results do not depend on the number of threads") {
  auto stream = make_stream(Device{});
  Stream& s = *stream;
  const Numbers x({300, 200}, 1), dy({300, 200}, 2), gamma({200}, 3);
  Numbers mean({300}, 4), rstd({300}, 5);
  std::vector<double> first[2];
  for (const int threads : {1, 2}) {
    set_threads(threads);
    Numbers dx = zeros({300, 200}), dgamma = zeros({200}), dbeta = zeros({200});
    layernorm_backward(s, {dy, x, gamma, mean, rstd}, {Out(dx), Out(dgamma), Out(dbeta)});
    std::vector<double>& all = first[threads - 1];
    all = dx.values();
    all.insert(all.end(), dgamma.values().begin(), dgamma.values().end());
    all.insert(all.end(), dbeta.values().begin(), dbeta.values().end());
  }
  CHECK(first[0] == first[1]);
  set_threads(0);
}
