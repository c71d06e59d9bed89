// The parameter table: layout, names, initial values.
#include "src/nn/parameters.h"

#include <doctest/doctest.h>

#include <cmath>

#include "tests/train/model/tiny_gpt.h"

using namespace tally::train;

TEST_CASE("decayed parameters come first, every range is aligned, gaps are zero") {
  auto stream = make_stream(Device{});
  {
    const Config c = tiny_config();
    ParameterTable table;
    register_gpt(c.model, &table);
    table.layout(*stream, DType::f32, true);
    table.initialize(7);
    bool decayed = true;
    int64_t end = 0, count = 0;
    std::vector<bool> used(static_cast<size_t>(table.elements()));
    for (const Parameter& p : table.all()) {
      CHECK(p.offset % 128 == 0);
      CHECK(p.offset >= end);
      CHECK((decayed || !p.decayed));
      CHECK(p.decayed == (p.shape.size() == 2));
      CHECK((p.offset < table.decayed_elements()) == p.decayed);
      decayed = p.decayed;
      end = p.offset + table.weight(p.name).numel();
      count += table.weight(p.name).numel();
      for (int64_t i = p.offset; i < end; ++i) used[static_cast<size_t>(i)] = true;
    }
    CHECK(end <= table.elements());
    CHECK(count == table.count());
    for (int64_t i = 0; i < table.elements(); ++i) {
      if (!used[static_cast<size_t>(i)]) REQUIRE(table.weights().as<float>()[i] == 0);
    }
    // 12 C^2 per block and biases, as counted by hand: C = 60, F = 200, 3 blocks, V = 96, 41
    // positions.
    CHECK(table.count() ==
          96 * 60 + 41 * 60 +
              3 * (60 * 180 + 180 + 60 * 60 + 60 + 60 * 200 + 200 + 200 * 60 + 60 + 4 * 60) +
              2 * 60);
    CHECK(table.master().data == table.weights().data);
    CHECK_THROWS_AS(table.find("h.3.ln_1.weight"), std::out_of_range);
    CHECK(table.weight("h.1.attn.c_attn.weight").dim(0) == 180);
    CHECK(table.weight("h.1.attn.c_attn.weight").dim(1) == 60);
    CHECK_THROWS_AS(table.layout(*stream, DType::f32, true), std::logic_error);
  }
  CHECK(stream->bytes_allocated() == 0);
}

TEST_CASE("initial values: GPT-2's spread, the same for every precision and layout") {
  auto stream = make_stream(Device{});
  Config c = tiny_config();
  c.model.hidden = 120;
  c.model.init_std = 0.02;
  const auto values = [&](DType type, uint64_t seed, int64_t layers, const std::string& name) {
    ModelConfig m = c.model;
    m.layers = layers;
    ParameterTable table;
    register_gpt(m, &table);
    table.layout(*stream, type, true);
    table.initialize(seed);
    return read_doubles(*stream, table.weight(name));
  };
  const auto spread = [](const std::vector<double>& v) {
    double sum = 0, squares = 0;
    for (double x : v) {
      sum += x;
      squares += x * x;
    }
    const double n = static_cast<double>(v.size());
    CHECK(std::abs(sum / n) < 5 * std::sqrt(squares / n / n));
    return std::sqrt(squares / n);
  };
  const auto fc = values(DType::f32, 1, 8, "h.2.mlp.c_fc.weight");
  CHECK(std::abs(spread(fc) / 0.02 - 1) < 0.02);
  // Outputs of 8 blocks: 0.02 / sqrt(16).
  CHECK(std::abs(spread(values(DType::f32, 1, 8, "h.2.mlp.c_proj.weight")) / 0.005 - 1) < 0.02);
  CHECK(std::abs(spread(values(DType::f32, 1, 8, "h.2.attn.c_proj.weight")) / 0.005 - 1) < 0.02);
  for (double v : values(DType::f32, 1, 8, "ln_f.weight")) CHECK(v == 1);
  for (double v : values(DType::f32, 1, 8, "ln_f.bias")) CHECK(v == 0);
  CHECK(values(DType::f64, 1, 8, "h.2.mlp.c_fc.weight") == fc);
  CHECK(values(DType::f32, 1, 3, "h.2.mlp.c_fc.weight") == fc);
  CHECK(values(DType::f32, 2, 8, "h.2.mlp.c_fc.weight") != fc);
  CHECK(values(DType::f32, 1, 8, "h.1.mlp.c_fc.weight") != fc);
  // bf16: the f32 values rounded.
  const auto narrow = values(DType::bf16, 1, 8, "h.2.mlp.c_fc.weight");
  for (size_t i = 0; i < fc.size(); ++i) {
    REQUIRE(std::abs(narrow[i] - fc[i]) <= std::abs(fc[i]) * 0x1p-8);
  }
}

TEST_CASE("16-bit weights have float32 masters") {
  auto stream = make_stream(Device{});
  const Config c = tiny_config();
  ParameterTable table;
  register_gpt(c.model, &table);
  table.layout(*stream, DType::bf16, true);
  table.initialize(1);
  CHECK(table.weights().dtype == DType::bf16);
  CHECK(table.master().dtype == DType::f32);
  CHECK(table.gradients().dtype == DType::f32);
  CHECK(table.first_moment().numel() == table.elements());
  const Parameter& p = table.find("wte.weight");
  const float* master = table.master().as<float>() + p.offset;
  const auto weights = read_doubles(*stream, table.weight("wte.weight"));
  bool rounded = false;
  for (size_t i = 0; i < weights.size(); ++i) {
    const double m = static_cast<double>(master[i]);
    REQUIRE(std::abs(weights[i] - m) <= std::abs(m) * 0x1p-8);
    rounded |= weights[i] != m;
  }
  CHECK(rounded);
}
