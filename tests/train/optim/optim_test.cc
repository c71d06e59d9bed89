// Learning-rate schedule, loss scaler, and what the optimizer does with overflow, clipping and
// bf16.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <random>

#include "src/optim/loss_scaler.h"
#include "src/optim/optimizer.h"
#include "src/optim/schedule.h"
#include "tests/train/model/tiny_gpt.h"

using namespace tally::train;

// Values worked out from Megatron-LM's formula with Python's decimal-exact floats.
TEST_CASE("learning rate: warm-up, then cosine, linear or constant") {
  OptimizerConfig c;
  c.lr = 1e-4;
  c.min_lr = 1e-5;
  c.warmup_samples = 216320;
  c.decay_samples = 128953125;
  c.decay_style = "cosine";
  CHECK(learning_rate(c, 0) == 0);
  CHECK(learning_rate(c, 108160) == doctest::Approx(5e-5).epsilon(1e-15));
  CHECK(learning_rate(c, 216320) == 1e-4);
  // Half of the way, (216320 + 128953125) / 2 rounded down: cos is 1.2e-8 above 0.
  CHECK(learning_rate(c, 64584722) == doctest::Approx(5.5e-5).epsilon(1e-7));
  // A third: min + 90e-6 * 0.75.
  CHECK(learning_rate(c, 216320 + 128736805 / 3) == doctest::Approx(7.75e-5).epsilon(1e-7));
  CHECK(learning_rate(c, 128953125) == doctest::Approx(1e-5).epsilon(1e-14));
  CHECK(learning_rate(c, 128953126) == 1e-5);
  c.decay_style = "linear";
  CHECK(learning_rate(c, 216320 + 128736805 / 4) == doctest::Approx(7.75e-5).epsilon(1e-7));
  CHECK(learning_rate(c, 128953125) == 1e-5);
  CHECK(learning_rate(c, 300000000) == 1e-5);
  c.decay_style = "constant";
  CHECK(learning_rate(c, 216319) == doctest::Approx(1e-4 * 216319 / 216320).epsilon(1e-15));
  CHECK(learning_rate(c, 300000000) == 1e-4);
  c.decay_style = "linaer";
  CHECK_THROWS_AS(learning_rate(c, 300000), std::invalid_argument);
}

TEST_CASE("learning rate without warm-up starts at the top") {
  OptimizerConfig c;
  c.lr = 1;
  c.min_lr = 0.5;
  c.warmup_samples = 0;
  c.decay_samples = 10;
  c.decay_style = "linear";
  CHECK(learning_rate(c, 0) == 1);
  CHECK(learning_rate(c, 5) == 0.75);
  CHECK(learning_rate(c, 10) == 0.5);
  // No decay given either: the minimum from the first sample on, the top before it.
  c.decay_samples = 0;
  CHECK(learning_rate(c, 0) == 1);
  CHECK(learning_rate(c, 1) == 0.5);
}

TEST_CASE(
    "loss scale: halves when overflow has used up its hysteresis, doubles after a quiet window") {
  Config c;
  c.precision = Precision::f16;
  c.initial_loss_scale = 4096;
  c.loss_scale_window = 3;
  c.hysteresis = 2;
  c.min_loss_scale = 512;
  LossScaler s(c);
  CHECK(s.scale() == 4096);
  s.update(true);
  CHECK(s.scale() == 4096);
  s.update(true);
  CHECK(s.scale() == 2048);
  s.update(false);
  s.update(false);
  s.update(true);  // hysteresis comes back with growth only, and the window starts again
  CHECK(s.scale() == 1024);
  s.update(true);
  s.update(true);
  CHECK(s.scale() == 512);
  s.update(false);
  s.update(false);
  CHECK(s.scale() == 512);
  LossScaler resumed(c);
  resumed.restore(s.state());
  s.update(false);
  resumed.update(false);
  CHECK(s.scale() == 1024);
  CHECK(resumed.scale() == 1024);
  s.update(true);
  CHECK(s.scale() == 1024);
}

TEST_CASE("loss scale: constant when given, 1 in other precisions") {
  Config c;
  c.precision = Precision::f16;
  c.loss_scale = 128;
  LossScaler given(c);
  given.update(true);
  given.update(true);
  CHECK(given.scale() == 128);
  c.precision = Precision::bf16;
  LossScaler none(c);
  none.update(true);
  CHECK(none.scale() == 1);
}

namespace {

struct Setup {
  explicit Setup(DType type, Config given = tiny_config()) : c(std::move(given)) {
    register_model(c.model, &table);
    table.allocate(*stream, type);
    optimizer = std::make_unique<Optimizer>(c, table, *stream);
    table.initialize(1, optimizer->buffers().master);
  }
  const OptimizerBuffers& buffers() const { return optimizer->buffers(); }
  Config c;
  std::unique_ptr<Stream> stream = make_stream(Device{});
  ParameterTable table;
  std::unique_ptr<Optimizer> optimizer;
};

}  // namespace

TEST_CASE("16-bit weights have float32 masters, wider ones are their own") {
  {
    const Setup s(DType::f32);
    CHECK(s.buffers().master.data == s.table.weights().data);
  }
  const Setup s(DType::bf16);
  CHECK(s.table.weights().dtype == DType::bf16);
  CHECK(s.table.gradients().dtype == DType::f32);
  CHECK(s.buffers().master.dtype == DType::f32);
  CHECK(s.buffers().first_moment.numel() == s.table.elements());
  const Parameter& p = s.table.find("wte.weight");
  const float* master = s.buffers().master.as<float>() + p.offset;
  const auto weights = read_doubles(*s.stream, s.table.get("wte.weight").value);
  bool rounded = false;
  for (size_t i = 0; i < weights.size(); ++i) {
    const double m = static_cast<double>(master[i]);
    REQUIRE(std::abs(weights[i] - m) <= std::abs(m) * 0x1p-8);
    rounded |= weights[i] != m;
  }
  CHECK(rounded);
}

TEST_CASE("a gradient that is not finite leaves everything but the gradients alone") {
  for (const double bad : {std::numeric_limits<double>::infinity(), std::nan("")}) {
    Config c = tiny_config(DType::f32);
    c.precision = Precision::f16;
    c.hysteresis = 1;
    c.initial_loss_scale = 1024;
    Setup s(DType::f32, c);
    const auto before = read_doubles(*s.stream, s.table.weights());
    s.optimizer->begin_step(0.1);
    float* g = s.table.gradients().as<float>();
    for (int64_t i = 0; i < s.table.elements(); ++i) g[i] = 1;
    g[777] = static_cast<float>(bad);
    s.optimizer->apply();
    const StepState state = s.optimizer->finish_step();
    CHECK(state.found_inf == 1);
    CHECK(s.optimizer->updates() == 0);
    CHECK(s.optimizer->scaler().scale() == 512);
    CHECK(read_doubles(*s.stream, s.table.weights()) == before);
    for (double v : read_doubles(*s.stream, s.table.gradients())) REQUIRE(v == 0);
    for (double v : read_doubles(*s.stream, s.buffers().first_moment)) REQUIRE(v == 0);
  }
}

TEST_CASE("a dynamic scale is kept on the device: steps follow each other without the host") {
  Config c = tiny_config(DType::f32);
  c.precision = Precision::f16;
  c.initial_loss_scale = 64;
  c.min_loss_scale = 2;
  c.loss_scale_window = 3;
  for (const int64_t hysteresis : {1, 2, 3}) {
    CAPTURE(hysteresis);
    c.hysteresis = hysteresis;
    Setup s(DType::f32, c);
    LossScaler plain(c);  // asked after every step
    std::mt19937_64 random(static_cast<uint64_t>(hysteresis));
    int64_t updates = 0;
    double least = 64, most = 64;
    for (int step = 0; step < 400; ++step) {
      s.optimizer->begin_step(0.001);
      const bool overflow = random() % 100 < (step / 50 % 2 == 0 ? 5 : 80);
      s.table.gradients().as<float>()[5] = overflow ? INFINITY : 1;
      CHECK(s.optimizer->state()->loss_scale == plain.scale());
      s.optimizer->apply();
      CHECK(s.optimizer->state()->step_loss_scale == plain.scale());
      plain.update(overflow);
      if (!overflow) {
        ++updates;
        CHECK(s.optimizer->state()->bias_correction1 ==
              doctest::Approx(1 - std::pow(c.optimizer.beta1, updates)).epsilon(1e-14));
        CHECK(s.optimizer->state()->bias_correction2 ==
              doctest::Approx(1 - std::pow(c.optimizer.beta2, updates)).epsilon(1e-12));
      }
      s.optimizer->finish_enqueued();
      least = std::min(least, plain.scale());
      most = std::max(most, plain.scale());
      if (step ==
          200) {  // the host learns, as for a checkpoint, and another run goes on from there
        s.optimizer->learn(*s.optimizer->state());
        CHECK(s.optimizer->updates() == updates);
        const auto kept = s.optimizer->scaler().state();
        CHECK(kept.scale == plain.scale());
        s.optimizer->restore(s.optimizer->updates(), kept);
      }
    }
    CHECK(least == 2);
    CHECK(most > 64);
  }
}

TEST_CASE("the gradient's norm is unscaled, and clipping acts on it") {
  Config c = tiny_config();
  c.precision = Precision::f16;
  c.loss_scale = 8;
  c.optimizer.clip = 1;
  Setup s(DType::f64, c);
  s.optimizer->begin_step(0);
  double* g = s.table.gradients().as<double>();
  g[0] = 3 * 8;
  g[200] = -4 * 8;
  s.optimizer->apply();
  const StepState state = s.optimizer->finish_step();
  CHECK(state.grad_norm == 5);
  CHECK(state.clip_factor == doctest::Approx(1 / (5 + 1e-6) / 8).epsilon(1e-14));
  // (1 - beta1) times the clipped gradient.
  CHECK(s.buffers().first_moment.as<double>()[0] == doctest::Approx(0.1 * 0.6).epsilon(1e-6));
  CHECK(s.buffers().second_moment.as<double>()[200] == doctest::Approx(1e-3 * 0.64).epsilon(1e-6));
}

TEST_CASE("SGD has no second moments, and only AdamW's updates can be deferred") {
  for (const OptimizerKind kind : {OptimizerKind::adam, OptimizerKind::lamb, OptimizerKind::sgd}) {
    Config c = tiny_config();
    c.optimizer.kind = kind;
    const Setup s(DType::f32, c);
    CHECK(s.buffers().first_moment.numel() == s.table.elements());
    CHECK(s.buffers().second_moment.defined() == (kind != OptimizerKind::sgd));
    CHECK(s.optimizer->can_defer() == (kind == OptimizerKind::adam));
    if (kind != OptimizerKind::adam) CHECK_THROWS_AS(s.optimizer->defer(0, 128), std::logic_error);
  }
}

TEST_CASE("LAMB and SGD skip the update of a gradient that is not finite") {
  for (const OptimizerKind kind : {OptimizerKind::lamb, OptimizerKind::sgd}) {
    Config c = tiny_config();
    c.optimizer.kind = kind;
    const Setup s(DType::f32, c);
    const std::vector<double> before = read_doubles(*s.stream, s.table.weights());
    s.optimizer->begin_step(1e-2);
    s.table.gradients().as<float>()[3] = std::numeric_limits<float>::infinity();
    s.optimizer->apply();
    CHECK(s.optimizer->finish_step().found_inf == 1);
    CHECK(s.optimizer->updates() == 0);
    CHECK(read_doubles(*s.stream, s.table.weights()) == before);
    for (const double v : read_doubles(*s.stream, s.buffers().first_moment)) REQUIRE(v == 0);
    for (const double v : read_doubles(*s.stream, s.table.gradients())) REQUIRE(v == 0);
  }
}

TEST_CASE("16-bit weights follow their float32 masters") {
  Setup s(DType::bf16);
  std::vector<float> masters(static_cast<size_t>(s.table.elements()));
  for (int step = 0; step < 5; ++step) {
    // So small a rate that bf16 alone would never move.
    s.optimizer->begin_step(1e-6);
    float* g = s.table.gradients().as<float>();
    for (int64_t i = 0; i < s.table.elements(); ++i) g[i] = static_cast<float>((i % 7) - 3);
    const float before = s.buffers().master.as<float>()[1];
    s.optimizer->apply();
    s.optimizer->finish_step();
    CHECK(s.buffers().master.as<float>()[1] != before);
  }
  std::vector<uint16_t> rounded(masters.size());
  convert_elements(s.buffers().master, Tensor(rounded.data(), DType::bf16, {s.table.elements()}));
  CHECK(std::memcmp(rounded.data(), s.table.weights().data, rounded.size() * 2) == 0);
}

TEST_CASE("weight decay acts on matrices only") {
  Config c = tiny_config();
  c.optimizer.weight_decay = 0.5;
  Setup s(DType::f64, c);
  const auto before = read_doubles(*s.stream, s.table.weights());
  s.optimizer->begin_step(0.1);
  s.optimizer->apply();
  s.optimizer->finish_step();
  const auto after = read_doubles(*s.stream, s.table.weights());
  for (size_t i = 0; i < before.size(); ++i) {
    const bool decayed = static_cast<int64_t>(i) < s.table.decayed_elements();
    REQUIRE(after[i] == doctest::Approx(before[i] * (decayed ? 0.95 : 1)).epsilon(1e-14));
  }
  CHECK(s.optimizer->updates() == 1);
}

TEST_CASE("training falls into a small batch, and repeats bit for bit") {
  std::vector<double> losses[2];
  for (std::vector<double>& run : losses) {
    Config c = tiny_config(DType::f32);
    c.model.hidden_dropout = 0.1;
    Setup s(DType::f32, c);
    auto model = one_set(make_gpt(c, s.table, *s.stream));
    TinyBatch batch(c, *s.stream, 1);
    const int64_t allocations = s.stream->allocations();
    for (uint64_t step = 1; step <= 40; ++step) {
      s.optimizer->begin_step(3e-3);
      model->forward_backward(batch.batch, 1, step, s.optimizer->state());
      s.optimizer->apply();
      run.push_back(s.optimizer->finish_step().loss());
    }
    CHECK(s.stream->allocations() == allocations);
    CHECK(run.back() < run.front() / 4);
  }
  CHECK(losses[0] == losses[1]);
}
