// Whole steps of a GPT on the GPU: gradients against float64 on the CPU and against the autograd
// reference, training in lower precision against float32, and what a steady step may not do.
#include <functional>

#include "src/device/cuda/cuda_stream.h"
#include "src/device/graph.h"
#include "src/optim/optimizer.h"
#include "tests/train/cuda/both.h"
#include "tests/train/model/tiny_gpt.h"

namespace tally::train {
namespace {

using Maker = std::unique_ptr<Stage> (*)(const Config&, const ParameterTable&, Stream&);

struct Gradients {
  double loss = 0;
  std::vector<std::string> names;
  std::vector<std::vector<double>> values;
};

Config config_of(const Kind& kind) {
  Config c = tiny_config(kind.type);
  if (kind.type == DType::f16) c.precision = Precision::f16;
  if (kind.mode == MatmulMode::tf32) c.precision = Precision::tf32;
  if (kind.mode == MatmulMode::tf32x3) c.precision = Precision::tf32x3;
  return c;
}

// Head dimension 64: cuDNN's attention serves it in 16-bit types.
Config wide_config(const Kind& kind) {
  Config c = config_of(kind);
  c.model.hidden = 192;
  c.model.ffn = 768;
  c.model.max_positions = c.sequence = 128;
  c.model.vocabulary = 1000;
  c.model.padded_vocabulary = 1024;
  return c;
}

struct Way {
  DeviceKind device;
  DType type;
  MatmulMode mode = MatmulMode::ieee;
  uint64_t dropout_seed = 0;
  bool deterministic = false;
  bool bf16_parameters = false;  // float64's are rounded to it
};

constexpr Way float64_on_cpu{DeviceKind::cpu, DType::f64};

void round_to_bf16(const ParameterTable& table, Stream& s) {
  for (const Parameter& p : table.all()) {
    const Tensor w = table.get(p.name).value;
    std::vector<double> values = read_doubles(s, w);
    std::vector<uint16_t> rounded(values.size());
    const Tensor doubles(values.data(), DType::f64, {w.numel()});
    const Tensor halves(rounded.data(), DType::bf16, {w.numel()});
    convert_elements(doubles, halves);
    convert_elements(halves, doubles);
    s.copy(w.data, values.data(), w.bytes());
    s.synchronize();
  }
}

Gradients run(Maker make, Config c, const Way& way) {
  const auto stream = make_stream(Device{way.device, 0});
  c.policy.deterministic = way.deterministic;
  c.policy.matmul_mode = way.mode;
  ParameterTable table;
  register_model(c.model, &table);
  table.allocate(*stream, way.type);
  table.initialize(c.seed);
  perturb(table, *stream);
  if (way.bf16_parameters) round_to_bf16(table, *stream);
  const auto model = one_set(make(c, table, *stream));
  Gradients r;
  {
    const TinyState state(*stream, 16);
    for (int i = 0; i < 2; ++i) {
      TinyBatch batch(c, *stream, 100 + static_cast<uint64_t>(i), i == 1);
      batch.batch.first = i == 0;
      model->forward_backward(batch.batch, 0.5, way.dropout_seed, state.state);
    }
    r.loss = state.read().loss();
    for (const Parameter& p : table.all()) {
      r.names.push_back(p.name);
      r.values.push_back(read_doubles(*stream, table.get(p.name).gradient));
    }
  }
  return r;
}

void compare(const Gradients& got, const Gradients& want, double tolerance) {
  CHECK(std::abs(got.loss - want.loss) <= tolerance * std::abs(want.loss));
  REQUIRE(got.names == want.names);
  for (size_t i = 0; i < got.names.size(); ++i) {
    const double error = relative_norm(got.values[i], want.values[i]);
    INFO(got.names[i], ": relative error ", error);
    CHECK(error <= tolerance);
  }
}

// Through a few layers the error of one operation adds up.
double whole_tolerance(const Kind& kind) {
  if (kind.type == DType::f64) return 1e-10;
  if (kind.mode == MatmulMode::tf32) return 1e-2;
  if (kind.type == DType::f32) return 1e-5;
  return kind.type == DType::bf16 ? 5e-2 : 1e-2;
}

TEST_CASE("cuda: GPT's gradients equal float64's on the CPU" * NEEDS_GPU) {
  for (const Kind& kind : kinds()) {
    for (const bool rotary : {false, true}) {
      for (const bool wide : {false, true}) {
        Config c = wide ? wide_config(kind) : config_of(kind);
        if (rotary) c.model.positions = Positions::rotary;
        INFO(std::string(kind.name), std::string(rotary ? " rotary" : " learned"),
             std::string(wide ? " wide" : " odd"));
        compare(run(make_gpt, c, {DeviceKind::cuda, kind.type, kind.mode}),
                run(make_gpt, c, float64_on_cpu), whole_tolerance(kind));
      }
    }
  }
}

TEST_CASE("cuda: GPT's gradients equal the autograd reference's on the GPU" * NEEDS_GPU) {
  for (const Kind& kind : kinds()) {
    const Config c = wide_config(kind);
    INFO(std::string(kind.name));
    compare(run(make_gpt, c, {DeviceKind::cuda, kind.type, kind.mode}),
            run(make_reference_gpt, c, {DeviceKind::cuda, kind.type, kind.mode}),
            whole_tolerance(kind));
  }
}

TEST_CASE("cuda: Llama's gradients equal float64's on the CPU" * NEEDS_GPU) {
  for (const Kind& kind : kinds()) {
    for (const bool wide : {false, true}) {
      Config c = wide ? wide_config(kind) : config_of(kind);
      make_llama(&c.model);
      if (wide) c.model.kv_channels = 64;
      for (const bool fusions : {true, false}) {
        if (!fusions) c.policy.fusions = no_fusions();
        INFO(std::string(kind.name), std::string(wide ? " wide" : " odd"));
        compare(run(make_gpt, c, {DeviceKind::cuda, kind.type, kind.mode}),
                run(make_gpt, c, float64_on_cpu), whole_tolerance(kind));
      }
    }
  }
}

TEST_CASE("cuda: Llama's dropout draws the CPU's masks" * NEEDS_GPU) {
  for (const Kind& kind : kinds()) {
    Config c = config_of(kind);
    make_llama(&c.model);
    c.model.hidden_dropout = 0.1;
    c.model.attention_dropout = size_of(kind.type) == 2 ? 0 : 0.2;  // cuDNN draws its own
    INFO(std::string(kind.name));
    compare(run(make_gpt, c, {DeviceKind::cuda, kind.type, kind.mode, 99}),
            run(make_gpt, c, {DeviceKind::cpu, DType::f64, MatmulMode::ieee, 99}),
            whole_tolerance(kind));
  }
}

TEST_CASE("cuda: dropout draws the CPU's masks" * NEEDS_GPU) {
  for (const Kind& kind : kinds()) {
    Config c = config_of(kind);
    c.model.hidden_dropout = 0.1;
    c.model.attention_dropout = size_of(kind.type) == 2 ? 0 : 0.2;  // cuDNN draws its own
    INFO(std::string(kind.name));
    compare(run(make_gpt, c, {DeviceKind::cuda, kind.type, kind.mode, 99}),
            run(make_gpt, c, {DeviceKind::cpu, DType::f64, MatmulMode::ieee, 99}),
            whole_tolerance(kind));
  }
}

TEST_CASE("cuda: no fusion changes the gradients" * NEEDS_GPU) {
  for (const Kind& kind : kinds()) {
    Config plain = wide_config(kind);
    plain.policy.fusions = no_fusions();
    const Gradients want = run(make_gpt, plain, {DeviceKind::cuda, kind.type, kind.mode});
    for (const auto& [name, shortcut] : fusion_names) {
      // Fusions of the step, not of its gradients, have tests of their own.
      if (shortcut == &Fusions::overwrite || shortcut == &Fusions::deferred_update) continue;
      INFO(std::string(name));
      Config c = plain;
      // The derivative is saved by the GEMMs with GELU in their epilogue.
      c.policy.fusions.gelu = shortcut == &Fusions::gelu_derivative;
      c.policy.fusions.*shortcut = true;
      // The head's fusion is left to timing; by rule it is taken.
      const bool by_rule = shortcut == &Fusions::head;
      INFO(std::string(kind.name));
      compare(run(make_gpt, c, {DeviceKind::cuda, kind.type, kind.mode, 0, by_rule}), want,
              whole_tolerance(kind));
    }
  }
}

TEST_CASE("cuda: recorded steps draw the masks of eager steps, new ones each time" * NEEDS_GPU) {
  for (const Kind& kind : kinds()) {
    Config c = wide_config(kind);
    c.model.hidden_dropout = c.model.attention_dropout = 0.2;
    const auto stream = make_stream(Device{DeviceKind::cuda, 0});
    c.policy.matmul_mode = kind.mode;
    c.policy.deterministic = true;
    ParameterTable table;
    register_model(c.model, &table);
    table.allocate(*stream, kind.type);
    table.initialize(c.seed);
    const auto model = one_set(make_gpt(c, table, *stream));
    const TinyState state(*stream);
    TinyBatch batch(c, *stream, 7);
    batch.batch.first = true;
    const auto gradients_of = [&](uint64_t seed, const std::function<void()>& step) {
      StepState fresh{};
      fresh.loss_scale = 1;
      fresh.micro_batch.dropout_seed = seed;
      stream->copy(state.state, &fresh, sizeof fresh);
      step();
      return read_doubles(*stream, table.gradients());
    };
    const auto work = [&] {
      model->forward_backward(batch.batch, 1, DropoutSeed(state.state, 0), state.state);
    };
    const auto graph = StepGraph::make(*stream);
    std::vector<std::vector<double>> called, replayed;
    for (const uint64_t seed : {11, 12}) called.push_back(gradients_of(seed, work));
    for (int turn = 0; turn < 2; ++turn) graph->run(work);  // called, then recorded below
    for (const uint64_t seed : {11, 12})
      replayed.push_back(gradients_of(seed, [&] { graph->run(work); }));
    INFO(std::string(kind.name));
    CHECK(called[0] != called[1]);
    CHECK(replayed[0] == called[0]);
    CHECK(replayed[1] == called[1]);
    // The seed given with the call draws the same.
    CHECK(gradients_of(0, [&] { model->forward_backward(batch.batch, 1, 12, state.state); }) ==
          called[1]);
  }
}

TEST_CASE("cuda: recomputation gives the same gradients" * NEEDS_GPU) {
  const Kind kind{DType::bf16, MatmulMode::ieee, "bf16", 1e-2};
  // Bit for bit: by rule instead of timing, both take the same kernels.
  for (const Recompute r : {Recompute::selective, Recompute::full}) {
    Config c = wide_config(kind);
    // Selective recomputation saves GELU's input, which rounds differently from its derivative.
    c.policy.fusions.gelu_derivative = r == Recompute::full;
    const Gradients none = run(make_gpt, c, {DeviceKind::cuda, kind.type, kind.mode, 0, true});
    c.recompute = r;
    compare(run(make_gpt, c, {DeviceKind::cuda, kind.type, kind.mode, 0, true}), none, 0);
  }
}

// Losses of a few training steps on one batch. With `graph` the step is recorded.
std::vector<double> train(Config c, DeviceKind device, DType type, MatmulMode mode, int steps,
                          bool graph, bool deterministic = false) {
  const auto stream = make_stream(Device{device, 0});
  c.policy.matmul_mode = mode;
  c.policy.deterministic = deterministic;
  ParameterTable table;
  register_model(c.model, &table);
  table.allocate(*stream, type);
  const auto model = one_set(make_gpt(c, table, *stream));
  Optimizer optimizer(c, table, *stream);
  table.initialize(c.seed, optimizer.buffers().master);
  const TinyBatch batch(c, *stream, 7);
  const auto recorder = StepGraph::make(*stream);
  const auto work = [&] {
    model->forward_backward(batch.batch, 1, 0, optimizer.state());
    optimizer.apply();
  };
  std::vector<double> losses;
  int64_t allocations = 0;
  for (int step = 0; step < steps; ++step) {
    optimizer.begin_step(3e-3);
    if (graph) {
      recorder->run(work);
    } else {
      work();
    }
    losses.push_back(optimizer.finish_step().loss());
    if (step == 1) allocations = stream->allocations();
    if (step > 1) CHECK(stream->allocations() == allocations);
  }
  return losses;
}

TEST_CASE("cuda: twenty training steps follow float64's and float32's" * NEEDS_GPU) {
  Config c = wide_config(kinds()[0]);
  c.optimizer.clip = 1;
  const auto exact = train(c, DeviceKind::cpu, DType::f64, MatmulMode::ieee, 20, false);
  CHECK(exact.back() < 0.8 * exact.front());
  for (const Kind& kind : kinds()) {
    Config here = wide_config(kind);
    here.optimizer.clip = 1;
    if (kind.type == DType::f16) here.loss_scale = 1024;
    for (const bool graph : {false, true}) {
      const auto losses = train(here, DeviceKind::cuda, kind.type, kind.mode, 20, graph);
      const double tolerance = kind.type == DType::f64         ? 1e-9
                               : size_of(kind.type) == 2       ? 2e-2
                               : kind.mode == MatmulMode::tf32 ? 5e-3
                                                               : 1e-4;
      for (size_t i = 0; i < losses.size(); ++i) {
        INFO(std::string(kind.name), std::string(graph ? " recorded" : " called"), " step ", i);
        CHECK(losses[i] == doctest::Approx(exact[i]).epsilon(tolerance));
      }
    }
  }
}

// How far each parameter moves in some steps with or without deferred updates.
std::vector<std::vector<double>> moved(const Config& c, DType type, bool late) {
  const auto stream = make_stream(Device{DeviceKind::cuda, 0});
  ParameterTable table;
  register_model(c.model, &table);
  table.allocate(*stream, type);
  const auto model = one_set(make_gpt(c, table, *stream));
  Optimizer optimizer(c, table, *stream);
  const Tensor& master = optimizer.buffers().master;
  table.initialize(c.seed, master);
  const std::vector<double> start = read_doubles(*stream, master);
  if (late) {
    DeferredUpdate* update = model->stage().deferred_update();
    REQUIRE(update != nullptr);
    REQUIRE(update->first() < update->last());
    optimizer.defer(update->first(), update->last());
    update->set([&](Stream& s, int64_t first, int64_t last, int sms) {
      CHECK(sms > 0);
      optimizer.update_deferred(s, first, last, sms);
    });
  }
  TinyBatch batch(c, *stream, 7);
  batch.batch.first = true;
  const auto recorder = StepGraph::make(*stream);
  for (int step = 0; step < 6; ++step) {
    optimizer.begin_step(1e-3);
    recorder->run([&] {
      model->forward_backward(batch.batch, 1, 0, optimizer.state());
      optimizer.apply(false);
    });
    optimizer.finish_step();
  }
  optimizer.complete();
  optimizer.complete();  // nothing is left
  const std::vector<double> end = read_doubles(*stream, master);
  std::vector<std::vector<double>> parameters;
  for (const Parameter& p : table.all()) {
    std::vector<double>& way = parameters.emplace_back();
    for (int64_t i = 0; i < table.get(p.name).value.numel(); ++i) {
      const auto at = static_cast<size_t>(p.offset + i);
      way.push_back(end[at] - start[at]);
    }
  }
  return parameters;
}

TEST_CASE("cuda: deferred updates train alike" * NEEDS_GPU) {
  for (const DType type : {DType::bf16, DType::f16}) {
    for (const bool tied : {true, false}) {
      Config c = wide_config({type, MatmulMode::ieee, "", 0});
      c.micro_batch = 64;  // tokens enough for it
      c.model.tied_embeddings = tied;
      if (type == DType::f16) c.loss_scale = 1024;
      const auto want = moved(c, type, false), got = moved(c, type, true);
      for (size_t i = 0; i < want.size(); ++i) {
        INFO("parameter ", i);
        // If an update were left out or done twice it would be around 1. GEMMs with reserved SMs
        // round differently.
        CHECK(relative_norm(got[i], want[i]) < 0.2);
      }
    }
  }
}

TEST_CASE("cuda: a deterministic run repeats bit for bit" * NEEDS_GPU) {
  const Kind kind{DType::bf16, MatmulMode::ieee, "bf16", 1e-2};
  const Config c = wide_config(kind);
  const auto once = train(c, DeviceKind::cuda, kind.type, kind.mode, 5, true, true);
  CHECK(train(c, DeviceKind::cuda, kind.type, kind.mode, 5, true, true) == once);
}

// In every recipe that this GPU computes, with gradients in E4M3.
std::vector<Config> fp8_configs() {
  const auto stream = make_stream(Device{DeviceKind::cuda, 0});
  const int capability = cuda::cuda_stream(*stream).capability();
  std::vector<Config> all;
  for (const Fp8Recipe& recipe : fp8_recipes)
    for (const bool llama : {false, true}) {
      if (!fp8_serves(recipe, capability)) continue;
      Config c = wide_config({DType::bf16, MatmulMode::ieee, "bf16", 1e-2});
      if (llama) make_llama(&c.model);
      if (llama) c.model.kv_channels = 64;
      c.fp8.format = Fp8Config::Format::e4m3;
      c.fp8.recipe = recipe;
      all.push_back(c);
    }
  return all;
}

// bf16 moves what lies between two numbers of E4M3 to either. How far gradients move by that is seen where
// the emulation's parameters alone are rounded to bf16: up to 0.17 of GPT's and 0.39 of Llama's.
TEST_CASE("cuda: FP8's gradients equal the CPU's emulation in float64" * NEEDS_GPU) {
  for (const Config& c : fp8_configs()) {
    INFO(c.fp8.recipe_name(), " ", std::string(c.model.block.gated() ? "llama" : "GPT"));
    const Gradients got = run(make_gpt, c, {DeviceKind::cuda, DType::bf16});
    const Gradients want = run(make_gpt, c, float64_on_cpu);
    Way rounded = float64_on_cpu;
    rounded.bf16_parameters = true;
    const Gradients moved = run(make_gpt, c, rounded);
    CHECK(std::abs(got.loss - want.loss) <= 0.02 * want.loss);
    REQUIRE(got.names == want.names);
    for (size_t i = 0; i < got.names.size(); ++i) {
      const double error = relative_norm(got.values[i], want.values[i]);
      const double noise = relative_norm(moved.values[i], want.values[i]);
      INFO(got.names[i], ": relative error ", error, ", by rounded parameters ", noise);
      CHECK(error <= 1.5 * noise + 0.05);
    }
  }
}

TEST_CASE("cuda: a deterministic run in FP8 repeats bit for bit" * NEEDS_GPU) {
  for (const Config& c : fp8_configs()) {
    const auto once = train(c, DeviceKind::cuda, DType::bf16, MatmulMode::ieee, 5, true, true);
    CHECK(train(c, DeviceKind::cuda, DType::bf16, MatmulMode::ieee, 5, true, true) == once);
  }
}

}  // namespace
}  // namespace tally::train
