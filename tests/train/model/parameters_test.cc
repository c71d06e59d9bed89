// The parameter table: layout, names, initial values.
#include "src/nn/parameters.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "src/device/convert.h"
#include "tests/train/model/tiny_gpt.h"

using namespace tally::train;

TEST_CASE("decayed parameters come first, every range is aligned, gaps are zero") {
  auto stream = make_stream(Device{});
  {
    const Config c = tiny_config();
    ParameterTable table;
    register_model(c.model, &table);
    table.allocate(*stream, DType::f32);
    table.initialize(7);
    bool decayed = true;
    int64_t end = 0, count = 0;
    std::vector<bool> used(static_cast<size_t>(table.elements()));
    for (const Parameter& p : table.all()) {
      CHECK(p.offset % 128 == 0);
      CHECK(p.offset >= end);
      CHECK((decayed || p.group != ParameterGroup::decayed));
      CHECK((p.group == ParameterGroup::decayed) == (p.shape.size() == 2));
      CHECK((p.offset < table.decayed_elements()) == (p.group == ParameterGroup::decayed));
      decayed = p.group == ParameterGroup::decayed;
      end = p.offset + table.get(p.name).value.numel();
      count += table.get(p.name).value.numel();
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
    CHECK_THROWS_AS(table.find("h.3.ln_1.weight"), std::out_of_range);
    CHECK(table.get("h.1.attn.c_attn.weight").value.dim(0) == 180);
    CHECK(table.get("h.1.attn.c_attn.weight").value.dim(1) == 60);
    CHECK_THROWS_AS(table.allocate(*stream, DType::f32), std::logic_error);
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
    register_model(m, &table);
    table.allocate(*stream, type);
    table.initialize(seed);
    return read_doubles(*stream, table.get(name).value);
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

TEST_CASE("a parameter that is drawn in several goes: weights, master weights, shards of both") {
  auto stream = make_stream(Device{});
  const int64_t rows = 3, columns = 6'000'000, count = rows * columns;
  struct Drawn {
    std::vector<float> weights, master;
  };
  const auto drawn = [&](DType type, const Shard& shard, std::vector<FlatRange> ranges,
                         bool others = true) {
    ParameterTable table;
    Parameter p;
    p.name = "w";
    p.shape = {rows, columns};
    p.shard = shard;
    p.init_std = 1;
    table.add(p);
    table.allocate(*stream, type);
    int64_t held = ranges.empty() ? table.elements() : 0;
    for (const FlatRange& r : ranges) held += r.count();
    Drawn d{std::vector<float>(static_cast<size_t>(table.count())),
            std::vector<float>(static_cast<size_t>(held))};
    table.initialize(3, Tensor(d.master.data(), DType::f32, {held}), ranges, others);
    convert_elements(table.get("w").value.view({table.count()}),
                     Tensor(d.weights.data(), DType::f32, {table.count()}));
    return d;
  };
  const Drawn whole = drawn(DType::f32, {}, {});
  REQUIRE(std::equal(whole.weights.begin(), whole.weights.end(), whole.master.begin()));
  CHECK(whole.weights[static_cast<size_t>(count) - 1] != 0);
  const FlatRange first{9'000'000, 17'000'000}, second{17'500'001, count};
  const Drawn narrow = drawn(DType::bf16, {}, {first, second});
  std::vector<float> want(whole.master.begin() + first.first, whole.master.begin() + first.last);
  want.insert(want.end(), whole.master.begin() + second.first, whole.master.begin() + second.last);
  CHECK(narrow.master == want);
  bool rounded = true;
  for (size_t i = 0; i < whole.weights.size(); ++i)
    rounded = rounded && std::abs(narrow.weights[i] - whole.weights[i]) <=
                             std::abs(whole.weights[i]) * 0x1p-8F;
  CHECK(rounded);
  const Drawn some = drawn(DType::bf16, {}, {first, second}, false);
  CHECK(some.master == want);
  bool own = true;
  for (int64_t i = 0; i < count; ++i) {
    const bool held = (i >= first.first && i < first.last) || i >= second.first;
    const auto at = static_cast<size_t>(i);
    own = own && some.weights[at] == (held ? narrow.weights[at] : 0);
  }
  CHECK(own);
  const Drawn left = drawn(DType::f32, {1, {}, 0, 2}, {});
  for (int64_t row = 0; row < rows; ++row)
    CHECK(std::equal(left.weights.begin() + row * columns / 2,
                     left.weights.begin() + (row + 1) * columns / 2,
                     whole.weights.begin() + row * columns));
}

// What `count` processes hold of a parameter, put together again.
TEST_CASE("a shard holds its share of every section, with the numbers of the whole") {
  auto stream = make_stream(Device{});
  const auto drawn = [&](const std::vector<int64_t>& shape, const Shard& shard) {
    ParameterTable table;
    Parameter p;
    p.name = "w";
    p.shape = shape;
    p.shard = shard;
    p.init_std = 1;
    table.add(p);
    table.allocate(*stream, DType::f32);
    table.initialize(3);
    CHECK(table.count() == p.elements() / shard.count);
    return read_doubles(*stream, table.get("w").value);
  };
  struct Case {
    std::vector<int64_t> shape;
    int dimension;
    std::vector<int64_t> sections;
  };
  // Rows; the rows of Q, K and V; columns; three unequal sections of columns.
  for (const Case& c : {Case{{12, 7}, 0, {}}, Case{{12, 7}, 0, {4, 4, 4}}, Case{{5, 12}, 1, {}},
                        Case{{5, 14}, 1, {8, 4, 2}}}) {
    const std::vector<double> whole = drawn(c.shape, {});
    const std::vector<int64_t> sections =
        c.sections.empty() ? std::vector<int64_t>{c.shape[static_cast<size_t>(c.dimension)]}
                           : c.sections;
    for (int index = 0; index < 2; ++index) {
      const std::vector<double> part = drawn(c.shape, {c.dimension, c.sections, index, 2});
      std::vector<double> want;
      for (int64_t row = 0; row < c.shape[0]; ++row) {
        for (int64_t column = 0; column < c.shape[1]; ++column) {
          int64_t at = c.dimension == 0 ? row : column;
          for (const int64_t section : sections) {
            if (at >= section) {
              at -= section;
              continue;
            }
            if (at * 2 / section == index)
              want.push_back(whole[static_cast<size_t>(row * c.shape[1] + column)]);
            break;
          }
        }
      }
      CHECK(part == want);
    }
  }
}

TEST_CASE("parameters that cannot be divided are refused") {
  const auto error_of = [](const Parameter& p) -> std::string {
    ParameterTable table;
    try {
      table.add(p);
    } catch (const std::invalid_argument& e) {
      return e.what();
    }
    return "";
  };
  Parameter p;
  p.name = "w";
  CHECK(error_of(p) == "parameter w: has 0 dimensions, and 1 to 5 are possible");
  p.shape = {6, 4};
  p.shard = {2, {}, 0, 2};
  CHECK(error_of(p) == "parameter w: is divided along a dimension that it does not have");
  p.shard = {0, {3, 2}, 0, 2};
  CHECK(error_of(p) == "parameter w: has sections that do not add up to 6");
  p.shard = {0, {3, 3}, 0, 2};
  CHECK(error_of(p) == "parameter w: has a section of 3, which 2 processes cannot share evenly");
}
