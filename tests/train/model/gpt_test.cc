// The explicit GPT against the autograd reference: loss and every gradient.
#include <doctest/doctest.h>

#include <cstring>
#include <functional>

#include "src/device/stream.h"
#include "tests/train/model/tiny_gpt.h"

using namespace tally::train;

namespace {

using Maker = std::unique_ptr<Stage> (*)(const Config&, const ParameterTable&, Stream&);

struct Result {
  double loss = 0;
  std::vector<std::vector<double>> gradients;
  std::vector<std::string> names;
  std::vector<char> bytes;  // of all gradients
};

struct Options {
  uint64_t dropout_seed = 0;
  int micro_batches = 1;
  bool holes = false;
  float loss_scale = 1;
  bool overwrite = false;          // the gradients hold something else before the first micro batch
  double narrow_tolerance = 3e-2;  // of bf16
};

Result run(Maker make, const Config& c, DType type, const Options& o) {
  auto stream = make_stream(Device{});
  ParameterTable table;
  register_model(c.model, &table);
  table.allocate(*stream, type);
  table.initialize(c.seed);
  perturb(table, *stream);
  auto model = one_set(make(c, table, *stream));
  TinyState state(*stream, o.loss_scale);
  if (o.overwrite) {
    for (const Parameter& p : table.all()) {
      const Tensor g = table.get(p.name).gradient;
      std::memset(g.data, 0xff, g.bytes());  // not a number
    }
  }
  for (int i = 0; i < o.micro_batches; ++i) {
    TinyBatch batch(c, *stream, 100 + static_cast<uint64_t>(i), o.holes);
    batch.batch.first = o.overwrite && i == 0;
    const uint64_t seed = o.dropout_seed ? o.dropout_seed + static_cast<uint64_t>(i) : 0;
    model->forward_backward(batch.batch, 1.0 / o.micro_batches, seed, state.state);
  }
  Result r;
  r.loss = state.read().loss();
  for (const Parameter& p : table.all()) {
    r.names.push_back(p.name);
    r.gradients.push_back(read_doubles(*stream, table.get(p.name).gradient));
  }
  r.bytes.resize(table.gradients().bytes());
  stream->copy(r.bytes.data(), table.gradients().data, r.bytes.size());
  return r;
}

void compare(const Result& a, const Result& b, double tolerance) {
  CHECK(std::abs(a.loss - b.loss) <= tolerance * std::abs(b.loss));
  REQUIRE(a.names == b.names);
  for (size_t i = 0; i < a.names.size(); ++i) {
    INFO(a.names[i]);
    CHECK(relative_norm(a.gradients[i], b.gradients[i]) <= tolerance);
  }
}

void against_reference(const Config& c, DType type, const Options& o = {}) {
  const Result a = run(make_gpt, c, type, o), b = run(make_reference_gpt, c, type, o);
  compare(a, b, type == DType::f64 ? 1e-10 : type == DType::f32 ? 1e-5 : o.narrow_tolerance);
}

}  // namespace

TEST_CASE("GPT equals the autograd reference: loss and every gradient") {
  for (const DType type : {DType::f64, DType::f32, DType::bf16}) {
    CAPTURE(dtype_name(type));
    Config c = tiny_config(type);
    SUBCASE("learned positions, tied embeddings") {
      against_reference(c, type);
    }
    SUBCASE("rotary positions") {
      c.model.positions = Positions::rotary;
      against_reference(c, type);
    }
    SUBCASE("rotary positions on a part of the head, another base") {
      c.model.positions = Positions::rotary;
      c.model.rotary_fraction = 0.5;
      c.model.rotary_base = 500;
      against_reference(c, type);
    }
    SUBCASE("a head of its own") {
      c.model.tied_embeddings = false;
      against_reference(c, type);
    }
    SUBCASE("gradient accumulation") {
      against_reference(c, type, {0, 3});
    }
    SUBCASE("targets that do not count") {
      against_reference(c, type, {0, 2, true});
    }
    SUBCASE("loss scale") {
      against_reference(c, type, {0, 1, false, 1024});
    }
    SUBCASE("dropout with the same masks") {
      c.model.hidden_dropout = 0.1;
      c.model.attention_dropout = 0.2;
      against_reference(c, type, {99, 2});
    }
    SUBCASE("one block, one token") {
      c.model.layers = 1;
      c.sequence = 1;
      against_reference(c, type);
    }
    SUBCASE("more tokens than one block of attention rows") {
      c.sequence = c.model.max_positions = 300;
      c.micro_batch = 1;
      c.model.attention_dropout = 0.1;
      against_reference(c, type, {7, 1});
    }
  }
}

TEST_CASE("every activation of the MLP equals the reference") {
  for (const MlpActivationEntry& entry : mlp_activations) {
    CAPTURE(entry.name);
    for (const Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full}) {
      Config c = tiny_config(DType::f64);
      if (entry.gated) make_llama(&c.model);
      c.model.block.mlp = entry.kind;
      c.recompute = recompute;
      against_reference(c, DType::f64, {0, 2});
    }
  }
}

TEST_CASE("Llama equals the autograd reference: loss and every gradient") {
  for (const DType type : {DType::f64, DType::f32, DType::bf16}) {
    CAPTURE(dtype_name(type));
    Config c = tiny_config(type);
    make_llama(&c.model);
    SUBCASE("tied embeddings") {
      against_reference(c, type);
    }
    SUBCASE("a head of its own, narrow heads, one group, another base") {
      c.model.tied_embeddings = false;
      c.model.kv_channels = 8;
      c.model.query_groups = 1;
      c.model.rotary_base = 500;
      against_reference(c, type, {0, 3, true});
    }
    SUBCASE("norms of the heads of Q and K (Qwen 3)") {
      c.model.block.qk_norm = true;
      // The weights' gradients are small sums of terms of both signs.
      against_reference(c, type, {0, 2, false, 1, false, 6e-2});
    }
    SUBCASE("biases of Q, K and V (Qwen 2)") {
      c.model.block.qkv_bias = true;
      against_reference(c, type, {0, 2});
    }
    SUBCASE("scaled rotary positions (Llama 3.1)") {
      c.model.rotary_scaling = {8, 1, 4, 64};
      against_reference(c, type);
    }
    SUBCASE("as many heads of K and V as of Q") {
      c.model.query_groups = c.model.kv_channels = 0;
      against_reference(c, type);
    }
    SUBCASE("dropout with the same masks") {
      c.model.hidden_dropout = 0.1;
      c.model.attention_dropout = 0.2;
      against_reference(c, type, {99, 2});
    }
    SUBCASE("without fusions") {
      c.policy.fusions = no_fusions();
      against_reference(c, type, {0, 2});
    }
  }
}

TEST_CASE("Llama: recomputation changes nothing, bit for bit") {
  for (const double dropout : {0.0, 0.1}) {
    Config c = tiny_config(DType::f32);
    make_llama(&c.model);
    c.model.hidden_dropout = c.model.attention_dropout = dropout;
    const Options options{dropout > 0 ? uint64_t{7} : 0, 2};
    const Result plain = run(make_gpt, c, DType::f32, options);
    for (const Recompute recompute : {Recompute::selective, Recompute::full}) {
      c.recompute = recompute;
      const Result again = run(make_gpt, c, DType::f32, options);
      CHECK(again.loss == plain.loss);
      CHECK((again.bytes == plain.bytes));
    }
  }
}

TEST_CASE("no fusion changes the gradients") {
  Config plain = tiny_config(DType::f64);
  plain.policy.fusions = no_fusions();
  for (const bool rotary : {false, true}) {
    for (const double attention_dropout : {0.0, 0.2}) {
      {
        plain.model.positions = rotary ? Positions::rotary : Positions::learned;
        plain.model.attention_dropout = attention_dropout;
        plain.model.hidden_dropout = attention_dropout / 2;
        const Options o{77, 2};
        const Result want = run(make_gpt, plain, DType::f64, o);
        for (const auto& [name, on] : fusion_names) {
          CAPTURE(name);
          Config c = plain;
          c.policy.fusions.*on = true;
          compare(run(make_gpt, c, DType::f64, o), want, 1e-12);
        }
        Config all = plain;
        all.policy.fusions = {};
        compare(run(make_gpt, all, DType::f64, o), want, 1e-12);
      }
    }
  }
}

TEST_CASE("a step's first micro batch overwrites what the gradients hold") {
  for (const bool tied : {true, false}) {
    for (const Maker make : {Maker(make_gpt), Maker(make_reference_gpt)}) {
      Config c = tiny_config();
      c.model.tied_embeddings = tied;
      const Result added = run(make, c, DType::f64, {0, 2});
      compare(run(make, c, DType::f64, {0, 2, false, 1, true}), added, 1e-14);
    }
  }
}

TEST_CASE("recomputation changes nothing, bit for bit") {
  for (const DType type : {DType::f64, DType::f32, DType::bf16}) {
    Config c = tiny_config(type);
    c.model.positions = Positions::rotary;
    c.model.hidden_dropout = 0.1;
    c.model.attention_dropout = 0.1;
    const Options o{3, 2};
    const Result none = run(make_gpt, c, type, o);
    for (const Recompute r : {Recompute::selective, Recompute::full}) {
      c.recompute = r;
      const Result again = run(make_gpt, c, type, o);
      CHECK(again.loss == none.loss);
      CHECK(again.bytes == none.bytes);
    }
  }
}

namespace {

// Micro batches 0, 1, 2 of a step in turn. 'f0' is the forward pass of the first, 'b0' its backward
// pass, 'e' an evaluation in a set of its own. Micro batch 2 takes the set of micro batch 0.
std::vector<char> gradients_of(const Config& c, DType type, const std::string& schedule) {
  auto stream = make_stream(Device{});
  ParameterTable table;
  register_model(c.model, &table);
  table.allocate(*stream, type);
  table.initialize(c.seed);
  perturb(table, *stream);
  const auto stage = make_gpt(c, table, *stream);
  const auto first = stage->make_activations(), second = stage->make_activations(),
             other = stage->make_activations();
  ActivationSet* const sets[] = {first.get(), second.get(), first.get()};
  TinyState state(*stream, 8), unused(*stream);
  TinyBatch batches[] = {TinyBatch(c, *stream, 100, true), TinyBatch(c, *stream, 101),
                         TinyBatch(c, *stream, 102, true)};
  batches[0].batch.first = true;
  for (size_t at = 0; at < schedule.size(); at += 2) {
    const size_t i = static_cast<size_t>(schedule[at + 1] - '0');
    const Pass pass{1.0 / 3, 40 + i, state.state};
    if (schedule[at] == 'f') stage->forward(batches[i].batch, pass, *sets[i]);
    if (schedule[at] == 'b') stage->backward(*sets[i]);
    if (schedule[at] == 'e') stage->evaluate(batches[i].batch, {1, {}, unused.state}, *other);
  }
  std::vector<char> bytes(table.gradients().bytes());
  stream->copy(bytes.data(), table.gradients().data, bytes.size());
  const double loss = state.read().loss();
  bytes.insert(bytes.end(), reinterpret_cast<const char*>(&loss),
               reinterpret_cast<const char*>(&loss) + sizeof loss);
  return bytes;
}

}  // namespace

TEST_CASE("micro batches in flight do not see each other, bit for bit") {
  for (const DType type : {DType::f64, DType::f32, DType::bf16}) {
    for (const Positions positions : {Positions::learned, Positions::rotary}) {
      for (const double dropout : {0.0, 0.1}) {
        for (const Recompute r : {Recompute::none, Recompute::selective, Recompute::full}) {
          CAPTURE(dtype_name(type));
          CAPTURE(dropout);
          CAPTURE(static_cast<int>(r));
          Config c = tiny_config(type);
          c.model.positions = positions;
          c.model.hidden_dropout = c.model.attention_dropout = dropout;
          c.recompute = r;
          const std::vector<char> want = gradients_of(c, type, "f0b0f1b1f2b2");
          CHECK(gradients_of(c, type, "f0f1b0b1f2b2") == want);
          CHECK(gradients_of(c, type, "f0f1b0f2b1b2") == want);  // a pipeline's steady state
          CHECK(gradients_of(c, type, "f0e1b0f1e2b1f2b2") == want);
        }
      }
    }
  }
}

TEST_CASE("recomputation saves memory") {
  auto stream = make_stream(Device{});
  size_t bytes[3] = {};
  for (const Recompute r : {Recompute::none, Recompute::selective, Recompute::full}) {
    Config c = tiny_config(DType::f32);
    c.model.layers = 8;
    c.recompute = r;
    ParameterTable table;
    register_model(c.model, &table);
    table.allocate(*stream, DType::f32);
    bytes[static_cast<int>(r)] = one_set(make_gpt(c, table, *stream))->bytes();
  }
  CHECK(bytes[1] < bytes[0] * 3 / 4);
  CHECK(bytes[2] < bytes[1] / 2);
}

TEST_CASE("the same step twice gives the same bits, and dropout depends on its seed") {
  Config c = tiny_config(DType::f32);
  c.model.hidden_dropout = c.model.attention_dropout = 0.1;
  const Result a = run(make_gpt, c, DType::f32, {11, 2}), b = run(make_gpt, c, DType::f32, {11, 2});
  CHECK(a.loss == b.loss);
  CHECK(a.bytes == b.bytes);
  CHECK(run(make_gpt, c, DType::f32, {12, 2}).loss != a.loss);
}

TEST_CASE("a steady step allocates nothing, and evaluation leaves gradients alone") {
  Config c = tiny_config(DType::f32);
  auto stream = make_stream(Device{});
  {
    ParameterTable table;
    register_model(c.model, &table);
    table.allocate(*stream, DType::f32);
    table.initialize(1);
    auto model = one_set(make_gpt(c, table, *stream));
    TinyBatch batch(c, *stream, 1);
    TinyState state(*stream);
    const int64_t before = stream->allocations();
    model->forward_backward(batch.batch, 1, 5, state.state);
    const double loss = state.read().loss();
    const auto gradients = read_doubles(*stream, table.gradients());
    model->evaluate(batch.batch, 1.0 / static_cast<double>(batch.batch.ids.numel()), state.state);
    CHECK(stream->allocations() == before);
    // Evaluation takes the loss in another way.
    CHECK(state.read().loss() == doctest::Approx(2 * loss).epsilon(1e-6));
    CHECK(read_doubles(*stream, table.gradients()) == gradients);
  }
  CHECK(stream->bytes_allocated() == 0);
  CHECK(stream->bytes_peak() > 0);
}

TEST_CASE("evaluation without dropout equals the reference") {
  Config c = tiny_config();
  c.model.hidden_dropout = 0.5;
  auto stream = make_stream(Device{});
  ParameterTable table;
  register_model(c.model, &table);
  table.allocate(*stream, DType::f64);
  table.initialize(1);
  TinyBatch batch(c, *stream, 1, true);
  double loss[2];
  int i = 0;
  for (Maker make : {static_cast<Maker>(make_gpt), static_cast<Maker>(make_reference_gpt)}) {
    TinyState state(*stream);
    one_set(make(c, table, *stream))->evaluate(batch.batch, 0.25, state.state);
    loss[i++] = state.read().loss();
  }
  CHECK(std::abs(loss[0] - loss[1]) < 1e-12 * loss[1]);
}

TEST_CASE("a batch of another shape is refused") {
  Config c = tiny_config();
  auto stream = make_stream(Device{});
  ParameterTable table;
  register_model(c.model, &table);
  table.allocate(*stream, DType::f64);
  auto model = one_set(make_gpt(c, table, *stream));
  TinyState state(*stream);
  c.sequence = 36;
  TinyBatch batch(c, *stream, 1);
  CHECK_THROWS_AS(model->evaluate(batch.batch, 1, state.state), std::invalid_argument);
}

namespace {

Config fp8_config(Fp8Config::Format format, const char* recipe = "tensorwise") {
  Config c = tiny_config();
  c.model.ffn = 240;
  c.fp8.format = format;
  c.fp8.recipe = *find_fp8_recipe(recipe);
  return c;
}

struct Fp8Form {
  Fp8Config::Format format;
  const char* recipe;
};
constexpr Fp8Form fp8_forms[] = {{Fp8Config::Format::hybrid, "tensorwise"},
                                 {Fp8Config::Format::e4m3, "tensorwise"},
                                 {Fp8Config::Format::e4m3, "rowwise"},
                                 {Fp8Config::Format::e4m3, "blockwise"},
                                 {Fp8Config::Format::hybrid, "blockwise"}};

Result first_batches(const Config& c, int micro_batches = 1) {
  return run(make_gpt, c, c.compute_type(), {0, micro_batches, false, 1, true});
}

// The largest difference of a gradient of the blocks' matrices, and of any other.
double largest_difference(const Result& a, const Result& b) {
  double largest = 0;
  for (size_t i = 0; i < a.names.size(); ++i)
    largest = std::max(largest, relative_norm(a.gradients[i], b.gradients[i]));
  return largest;
}

}  // namespace

TEST_CASE("FP8: losses and gradients are those of the wider type within the format's bound") {
  for (const bool llama : {false, true})
    for (const auto& [format, recipe] : fp8_forms)
      for (const Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full}) {
        Config c = fp8_config(format, recipe);
        // The other recipes recompute as this one does.
        if (c.fp8.recipe.weights != Fp8Scaling::tensor && recompute == Recompute::selective)
          continue;
        if (llama) make_llama(&c.model);
        c.recompute = recompute;
        Config wide = c;
        wide.fp8 = {};
        const Result a = first_batches(c, 2), b = first_batches(wide, 2);
        CAPTURE(llama);
        CAPTURE(std::string(fp8_format_name(format)));
        CAPTURE(std::string(recipe));
        CAPTURE(std::string(recompute_name(recompute)));
        CHECK(std::abs(a.loss - b.loss) < 5e-3 * b.loss);
        // Rounding to 4 bits is 2 to 4 % of a matrix, in each of the GEMMs that a gradient has passed.
        CHECK(largest_difference(a, b) < 0.25);
        CHECK(largest_difference(a, b) > 5e-3);
        // Recomputation changes nothing.
        c.recompute = Recompute::none;
        CHECK(first_batches(c, 2).bytes == a.bytes);
      }
}

TEST_CASE("FP8: layers that stay in bf16 are computed as without it") {
  Config c = fp8_config(Fp8Config::Format::hybrid);
  Config wide = c;
  wide.fp8 = {};
  const Result without = first_batches(wide);
  c.fp8.layers_at_start = 2;
  c.fp8.layers_at_end = 0;
  const double one_layer = largest_difference(first_batches(c), without);
  c.fp8.layers_at_start = 3;  // all of them
  CHECK(largest_difference(first_batches(c), without) < 1e-12);
  c.fp8.layers_at_start = 0;
  CHECK(largest_difference(first_batches(c), without) > one_layer);
  CHECK(one_layer > 1e-3);
}

TEST_CASE("FP8: each recipe gives numbers of its own, and the same ones again") {
  std::vector<std::vector<char>> seen;
  for (const auto& [format, recipe] : fp8_forms) {
    const Config c = fp8_config(format, recipe);
    const Result a = first_batches(c, 2);
    CHECK(first_batches(c, 2).bytes == a.bytes);
    for (const auto& other : seen) CHECK((a.bytes != other));
    seen.push_back(a.bytes);
  }
}

TEST_CASE("FP8: an evaluation reads the weights of its moment, and so does a step's first batch") {
  const Config c = fp8_config(Fp8Config::Format::hybrid);
  const auto loss_of = [&](bool trains, double factor, bool before) {
    auto stream = make_stream(Device{});
    ParameterTable table;
    register_model(c.model, &table);
    table.allocate(*stream, DType::f64);
    table.initialize(c.seed);
    auto model = one_set(make_gpt(c, table, *stream));
    TinyBatch batch(c, *stream, 1);
    batch.batch.first = true;
    TinyState used(*stream), state(*stream);
    if (before) model->forward_backward(batch.batch, 1, {}, used.state);
    auto* weights = table.weights().as<double>();
    for (int64_t i = 0; i < table.decayed_elements(); ++i) weights[i] *= factor;
    if (trains) {
      model->forward_backward(batch.batch, 1, {}, state.state);
    } else {
      model->evaluate(batch.batch, 1.0 / static_cast<double>(c.micro_batch * c.sequence),
                      state.state);
    }
    return state.read().loss();
  };
  for (const bool trains : {false, true}) {
    CHECK(loss_of(trains, 1.5, true) == loss_of(trains, 1.5, false));
    CHECK(loss_of(trains, 1.5, true) != loss_of(trains, 1, true));
  }
}
