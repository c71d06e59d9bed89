// A linear layer in FP8 against its recipe in float64: y, dx and dw, each from the operands that the
// recipe asks for.
#include <doctest/doctest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "src/device/arena.h"
#include "src/nn/linear.h"
#include "tests/train/ops/fp8_numbers.h"
#include "tests/train/ops/numbers.h"

namespace tally::train {
namespace {

// M tokens, K inputs, N outputs: the last blocks of each are partly filled.
constexpr int64_t tokens = 144, inputs = 160, outputs = 272;

// What x[rows, inner] has become: rounded with scales along its rows.
std::vector<double> rounded_rows(const std::vector<double>& x, int64_t rows, DType format,
                                 Fp8Scaling scaling) {
  const auto inner = static_cast<int64_t>(x.size()) / rows;
  const auto scales = fp8_scales(x, rows, format, scaling);
  std::vector<double> y(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    const double scale = scales.at(fp8_scale_place(scaling, rows, inner, at / inner, at % inner));
    y[i] = fp8_value(fp8_nearest(x[i] / scale, format), format) * scale;
  }
  return y;
}

// a[rows, inner] b[columns, inner]^T
std::vector<double> product(const std::vector<double>& a, const std::vector<double>& b,
                            int64_t rows, int64_t columns) {
  const auto m = static_cast<size_t>(rows), n = static_cast<size_t>(columns), k = a.size() / m;
  std::vector<double> y(m * n);
  for (size_t i = 0; i < m; ++i)
    for (size_t j = 0; j < n; ++j)
      for (size_t l = 0; l < k; ++l) y[i * n + j] += a[i * k + l] * b[j * k + l];
  return y;
}

// Numbers whose rows and columns have magnitudes of their own.
Numbers drawn(int64_t rows, int64_t columns, uint64_t seed) {
  Numbers x({rows, columns}, seed);
  for (size_t i = 0; i < x.size(); ++i) {
    const auto row = i / static_cast<size_t>(columns), column = i % static_cast<size_t>(columns);
    x[i] = static_cast<float>(x[i] * std::pow(1.03, static_cast<double>(row)) *
                              std::pow(0.98, static_cast<double>(column)));
  }
  return x;
}

// A layer of float64 with what a stage reserves for it.
struct Layer {
  Layer(const Fp8Recipe& recipe, DType gradients) {
    context.fp8.recipe = recipe;
    context.fp8.backward = gradients;
    context.fp8.casts_weights = true;
    context.accumulate = false;
    const auto bytes = [&](int64_t n) { return arena.make(DType::u8, {n}, "test"); };
    const auto floats = [&](int64_t n) { return arena.make(DType::f32, {n}, "test"); };
    constexpr int64_t many = tokens * outputs;
    context.fp8.x = bytes(many);
    context.fp8.dy_rows = bytes(many);
    context.fp8.dy_columns = bytes(many);
    context.fp8.x_scales = floats(many);
    context.fp8.dy_row_scales = floats(many);
    context.fp8.dy_column_scales =
        recipe.gradients == Fp8Scaling::tensor ? context.fp8.dy_row_scales : floats(many);
    context.fp8.amax = floats(1);
    context.fp8.amaxes = floats(1);
    linear.weight.value = w.t();
    linear.weight.gradient = dw.t();
    const Tensor scales = floats(many);
    linear.fp8 = {Tensor(bytes(outputs * inputs).data, DType::e4m3, {outputs, inputs}),
                  Tensor(bytes(outputs * inputs).data, DType::e4m3, {inputs, outputs}), scales,
                  recipe.weights == Fp8Scaling::tensor ? scales : floats(many), recipe.weights};
  }

  std::unique_ptr<Stream> stream = make_stream(Device{});
  Arena arena{*stream};
  LayerContext context{.compute = {*stream, {}}};
  Numbers w = drawn(outputs, inputs, 1), dw = zeros({outputs, inputs});
  Linear linear;
};

void check_layer(const Fp8Recipe& recipe, DType gradients) {
  Layer layer(recipe, gradients);
  const LayerContext& c = layer.context;
  const Numbers x = drawn(tokens, inputs, 2), dy = drawn(tokens, outputs, 3);
  const Numbers y = zeros({tokens, outputs}), dx = zeros({tokens, inputs});
  float amax = 0;
  const LinearInput in(x.t(), Tensor(&amax, DType::f32, {1}));
  layer.linear.forward(c, in, y.t());
  const OutputGradient gradient = layer.linear.gradient_at_output(c, dy.t());
  layer.linear.backward_weight(c, gradient, in);
  layer.linear.backward_input(c, gradient, dx.t());

  const auto of_x = [&](const std::vector<double>& v, int64_t rows) {
    return rounded_rows(v, rows, DType::e4m3, recipe.activations);
  };
  const auto of_w = [&](const std::vector<double>& v, int64_t rows) {
    return rounded_rows(v, rows, DType::e4m3, recipe.weights);
  };
  const auto of_dy = [&](const std::vector<double>& v, int64_t rows) {
    return rounded_rows(v, rows, gradients, recipe.gradients);
  };
  const auto& w = layer.w.values();
  const std::vector<double> x_columns = transposed(x.values(), tokens),
                            w_columns = transposed(w, outputs),
                            dy_columns = transposed(dy.values(), tokens);
  // A tensor's scale is no power of two: a number that lies between two may become the other one.
  const double bound = recipe.weights == Fp8Scaling::tensor ? 1e-3 : 1e-12;
  CHECK(relative_error(y.values(), product(of_x(x.values(), tokens), of_w(w, outputs), tokens,
                                           outputs)) < bound);
  CHECK(relative_error(dx.values(), product(of_dy(dy.values(), tokens), of_w(w_columns, inputs),
                                            tokens, inputs)) < bound);
  CHECK(relative_error(
            layer.dw.values(),
            product(of_dy(dy_columns, outputs), of_x(x_columns, inputs), outputs, inputs)) < bound);
}

TEST_CASE("FP8: a layer's three GEMMs are those of its recipe") {
  // Here once more, so that a change of the program's table is seen.
  struct Known {
    const char* name;
    Fp8Scaling activations, weights, gradients;
    bool fast_forward, e5m2_gradients;
  };
  for (const Known& known :
       {Known{"tensorwise", Fp8Scaling::tensor, Fp8Scaling::tensor, Fp8Scaling::tensor, true, true},
        {"rowwise", Fp8Scaling::row, Fp8Scaling::row, Fp8Scaling::row, true, false},
        {"blockwise", Fp8Scaling::vector128, Fp8Scaling::block128, Fp8Scaling::vector128, false,
         true}}) {
    CAPTURE(std::string(known.name));
    const Fp8Recipe* recipe = find_fp8_recipe(known.name);
    REQUIRE(recipe);
    CHECK(recipe->activations == known.activations);
    CHECK(recipe->weights == known.weights);
    CHECK(recipe->gradients == known.gradients);
    CHECK(recipe->fast_forward == known.fast_forward);
    CHECK(recipe->e5m2_gradients == known.e5m2_gradients);
    check_layer(*recipe, DType::e4m3);
    if (known.e5m2_gradients) check_layer(*recipe, DType::e5m2);
  }
}

}  // namespace
}  // namespace tally::train
