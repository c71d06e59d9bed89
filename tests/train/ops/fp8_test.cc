#include "src/ops/fp8/fp8.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "tests/train/ops/fp8_numbers.h"
#include "tests/train/ops/numbers.h"

namespace tally::train {
namespace {

constexpr DType formats[] = {DType::e4m3, DType::e5m2};
constexpr Fp8Scaling scalings[] = {Fp8Scaling::tensor, Fp8Scaling::row, Fp8Scaling::vector128,
                                   Fp8Scaling::block128};
constexpr Fp8Scaling own_scalings[] = {Fp8Scaling::row, Fp8Scaling::vector128,
                                       Fp8Scaling::block128};

// One of the copies of a matrix: an operand of a GEMM.
struct Operand {
  Operand(int64_t height, int64_t width, Fp8Scaling of)
      : rows(height),
        inner(width),
        scaling(of),
        bytes(static_cast<size_t>(height * width)),
        scales(static_cast<size_t>(fp8_scale_count(of, height, width)), -1) {}
  Tensor data(DType format) { return Tensor(bytes.data(), format, {rows, inner}); }
  Tensor scale() {
    return Tensor(scales.data(), DType::f32, {static_cast<int64_t>(scales.size())});
  }
  float scale_of(size_t i) const {
    const auto at = static_cast<int64_t>(i);
    return scales[fp8_scale_place(scaling, rows, inner, at / inner, at % inner)];
  }

  int64_t rows, inner;
  Fp8Scaling scaling;
  std::vector<uint8_t> bytes;
  std::vector<float> scales;
};

// A matrix cast to FP8, and what it was cast from.
struct Cast {
  Cast(const In& x, DType of, Fp8Scaling scaling = Fp8Scaling::tensor)
      : format(of), rows(x.dim(0), x.dim(1), scaling), columns(x.dim(1), x.dim(0), scaling) {
    const auto stream = make_stream(Device{});
    const Tensor largest(&amax, DType::f32, {1});
    const bool one_scale = scaling == Fp8Scaling::tensor;
    if (one_scale) fp8_amax(*stream, x, Out(largest));
    fp8_cast(*stream, x, one_scale ? largest : Tensor(),
             {rows.data(format), columns.data(format), rows.scale(),
              one_scale ? rows.scale() : columns.scale(), scaling});
    if (one_scale) columns.scales = rows.scales;
  }
  Cast(const Cast&) = delete;
  Cast& operator=(const Cast&) = delete;
  double value(size_t i) const { return fp8_value(rows.bytes[i], format) * rows.scale_of(i); }
  Fp8Matrix operand() { return {rows.data(format), rows.scale(), rows.scaling}; }

  DType format;
  float amax = -1;
  Operand rows, columns;
};

// Against the oracle: every scale, and each byte the nearest number to x / scale.
void check_operand(const std::vector<double>& x, const Operand& got, DType format) {
  const auto want = fp8_scales(x, got.rows, format, got.scaling);
  for (const auto& [place, scale] : want) {
    INFO("scale ", place, " of ", std::string(dtype_name(format)));
    REQUIRE(got.scales[place] == static_cast<float>(scale));
  }
  // A tensor's scale is no power of two: the program multiplies in float32.
  float largest = smallest_amax;
  for (const double v : x) largest = std::fmax(largest, std::fabs(static_cast<float>(v)));
  for (size_t i = 0; i < x.size(); ++i) {
    const double scaled = got.scaling == Fp8Scaling::tensor
                              ? static_cast<float>(x[i]) * (largest_of(format) / largest)
                              : x[i] / got.scale_of(i);
    INFO(std::string(dtype_name(format)), " ", i, ": ", x[i], ", scaled ", scaled);
    REQUIRE(int{got.bytes[i]} == int{fp8_nearest(scaled, format)});
  }
}

void check_cast(const Rounded& x, const Cast& cast) {
  std::vector<double> values = x.get();
  for (double& v : values) v = static_cast<float>(v);  // float64 is rounded before it is cast
  check_operand(values, cast.rows, cast.format);
  check_operand(transposed(values, x.t().dim(0)), cast.columns, cast.format);
}

TEST_CASE("FP8: a cast gives the nearest numbers at the oracle's scales, rows and columns") {
  for (const Fp8Scaling scaling : scalings)
    for (const DType format : formats)
      for (const DType type : {DType::f64, DType::f32, DType::bf16, DType::f16})
        for (const auto& [height, width] : {std::pair<int64_t, int64_t>{48, 32}, {144, 272}}) {
          if (type != DType::bf16 && height > 48) continue;
          Numbers x({height, width}, 7, 0.3);
          x[5] = 0;
          x[6] = -0.0;
          x[7] = 1e-7;  // becomes 0 or the smallest number
          // Rows of other magnitudes.
          for (size_t j = 0; j < 32; ++j) x[j + 64] *= 1e-3;
          const Rounded rounded(x, type);
          INFO(static_cast<int>(scaling), " ", std::string(dtype_name(type)));
          check_cast(rounded, Cast(rounded, format, scaling));
        }
}

TEST_CASE("FP8: rows that were cast in pieces are completed to the cast of the whole") {
  const auto stream = make_stream(Device{});
  constexpr int64_t height = 48, width = 32, piece = 16 * 7;
  for (const DType format : formats) {
    const Rounded x(Numbers({height, width}, 9, 0.3), DType::bf16);
    Cast whole(x, format);
    Operand rows(height, width, Fp8Scaling::tensor), columns(width, height, Fp8Scaling::tensor);
    const Tensor amax(&whole.amax, DType::f32, {1}), flat = x.t().view({height * width});
    const Tensor bytes = rows.data(format).view({height * width});
    float scratch = 0;
    for (int64_t at = 0; at < flat.numel(); at += piece) {
      const int64_t count = std::min(piece, flat.numel() - at);
      fp8_cast(*stream, flat.rows(at, count).view({count / 16, 16}), amax,
               {bytes.rows(at, count).view({count / 16, 16}),
                {},
                Tensor(&scratch, DType::f32, {1}),
                {},
                Fp8Scaling::tensor});
    }
    fp8_complete(
        *stream, amax,
        {rows.data(format), columns.data(format), rows.scale(), rows.scale(), Fp8Scaling::tensor});
    CHECK(rows.bytes == whole.rows.bytes);
    CHECK(columns.bytes == whole.columns.bytes);
    CHECK(rows.scales == whole.rows.scales);
    CHECK(scratch == rows.scales[0]);
  }
}

TEST_CASE("FP8: scales of rows and blocks are powers of two at the edge of the format") {
  for (const DType format : formats)
    for (const Fp8Scaling scaling : own_scalings) {
      const double largest = largest_of(format);
      // The largest magnitude, its scale and what it becomes.
      struct Edge {
        double amax, scale, becomes;
      };
      for (const Edge& edge :
           {Edge{largest, 1, largest},
            {largest / 64, 1.0 / 64, largest},
            {std::nextafter(static_cast<float>(largest), 1e9F), 2, largest / 2}}) {
        Numbers x({16, 16}, 0);
        x[0] = -edge.amax;
        const Cast cast(Rounded(x, DType::f32), format, scaling);
        CHECK(cast.rows.scale_of(0) == edge.scale);
        CHECK(fp8_value(cast.rows.bytes[0], format) == -edge.becomes);
      }
    }
}

TEST_CASE("FP8: one huge number takes the range of what shares its scale, and nothing saturates") {
  for (const DType format : formats)
    for (const Fp8Scaling scaling : scalings) {
      constexpr int64_t height = 144, width = 160;
      Numbers x({height, width}, 3);
      const size_t huge = width + 1;  // row 1, column 1
      x[huge] = -3e30;
      const Rounded rounded(x, DType::bf16);
      const Cast cast(rounded, format, scaling);
      check_cast(rounded, cast);
      const double step = format == DType::e4m3 ? 0.0625 : 0.125;
      CHECK(cast.value(huge) == doctest::Approx(rounded.get()[huge]).epsilon(step));
      CHECK(std::fabs(fp8_value(cast.rows.bytes[huge], format)) <= largest_of(format));
      CHECK(std::fabs(fp8_value(cast.rows.bytes[huge], format)) > largest_of(format) / 2);
      // What is smaller by more than the format's range becomes zero.
      const auto lost = [&](size_t row, size_t column) {
        return cast.value(row * width + column) == 0;
      };
      const bool tensor = scaling == Fp8Scaling::tensor, row = scaling == Fp8Scaling::row,
                 block = scaling == Fp8Scaling::block128;
      CHECK(lost(1, 2));
      CHECK(lost(1, 150) == (tensor || row));
      CHECK(lost(2, 2) == (tensor || block));
      CHECK(lost(2, 150) == tensor);
      CHECK(lost(140, 2) == tensor);
    }
}

TEST_CASE("FP8: zeros stay zeros, and what is smaller than any scale becomes zero") {
  for (const Fp8Scaling scaling : scalings)
    for (const double value : {0.0, 1e-38}) {
      Numbers x({16, 16}, 0);
      for (double& v : x.values()) v = value;
      const Cast cast(Rounded(x, DType::f32), DType::e4m3, scaling);
      CHECK(cast.rows.scale_of(0) == static_cast<float>(fp8_scale(0, DType::e4m3, scaling)));
      CHECK(cast.rows.scale_of(0) <= 2 * smallest_amax / 448);
      for (const uint8_t byte : cast.rows.bytes) CHECK(int{byte} == 0);
    }
}

TEST_CASE("FP8: a NaN or an infinity reaches the result, whatever the other numbers are") {
  const auto stream = make_stream(Device{});
  for (const Fp8Scaling scaling : scalings)
    for (const DType format : formats)
      for (const double bad :
           {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(),
            -std::numeric_limits<double>::infinity()}) {
        Numbers x({16, 16}, 5), y({16, 16}, 0);
        x[33] = bad;
        Cast a(Rounded(x, DType::bf16), format, scaling);
        Cast b(Rounded(Numbers({16, 16}, 6), DType::bf16), DType::e4m3, scaling);
        fp8_gemm(*stream, a.operand(), b.operand(), Out(y.t()), {});
        INFO(bad, " ", static_cast<int>(scaling));
        const float scale = a.rows.scale_of(33);
        CHECK((std::isnan(bad) ? std::isnan(scale) : std::isinf(scale)));
        CHECK(std::isnan(y[2 * 16]));  // the row of x that has it
        // Other rows have scales of their own.
        const bool alone = scaling == Fp8Scaling::row || scaling == Fp8Scaling::vector128;
        CHECK(std::isnan(y[3 * 16]) == !alone);
      }
}

// In float64 from the cast numbers.
std::vector<double> product(const Cast& a, const Cast& b, size_t m, size_t n, size_t k) {
  std::vector<double> out(m * n);
  for (size_t i = 0; i < m; ++i)
    for (size_t j = 0; j < n; ++j)
      for (size_t l = 0; l < k; ++l) out[i * n + j] += a.value(i * k + l) * b.value(j * k + l);
  return out;
}

// The scalings of both operands of the GEMMs that recipes ask for.
constexpr std::pair<Fp8Scaling, Fp8Scaling> products[] = {
    {Fp8Scaling::tensor, Fp8Scaling::tensor},
    {Fp8Scaling::row, Fp8Scaling::row},
    {Fp8Scaling::vector128, Fp8Scaling::block128},
    {Fp8Scaling::vector128, Fp8Scaling::vector128}};

TEST_CASE("FP8: a GEMM is the product of the cast numbers, with its bias and what it adds to") {
  const auto stream = make_stream(Device{});
  constexpr int64_t m = 32, n = 48, k = 144;
  for (const auto& [of_a, of_b] : products)
    for (const DType format : formats) {
      const Rounded x(Numbers({m, k}, 1), DType::bf16), w(Numbers({n, k}, 2, 0.02), DType::bf16);
      Cast a(x, format, of_a), b(w, DType::e4m3, of_b);
      const std::vector<double> plain = product(a, b, m, n, k);
      const Numbers bias({n}, 3), addend({m, n}, 4);
      INFO(static_cast<int>(of_a), " ", static_cast<int>(of_b), " ",
           std::string(dtype_name(format)));
      for (const bool with_bias : {false, true})
        for (const bool adds : {false, true}) {
          std::vector<double> want = plain;
          for (size_t i = 0; i < want.size(); ++i)
            want[i] += (with_bias ? bias[i % n] : 0) + (adds ? addend[i] : 0);
          for (const DType type : {DType::f64, DType::f32, DType::bf16}) {
            const Rounded y(adds ? addend : zeros({m, n}), type), b32(bias, type);
            fp8_gemm(*stream, a.operand(), b.operand(), Out(y.t()),
                     {with_bias ? In(b32) : In(), adds ? In(y) : In(), false});
            CHECK(relative_error(y.get(), want) < (type == DType::bf16 ? 4e-3 : 1e-6));
          }
        }
      // Beside the numbers themselves: within the format's half step, 2^-4 or 2^-3 of each factor.
      std::vector<double> exact(plain.size());
      const std::vector<double> p = x.get(), q = w.get();
      for (size_t i = 0; i < m; ++i)
        for (size_t j = 0; j < n; ++j)
          for (size_t l = 0; l < k; ++l) exact[i * n + j] += p[i * k + l] * q[j * k + l];
      CHECK(relative_error(plain, exact) < (format == DType::e4m3 ? 0.05 : 0.08));
    }
}

TEST_CASE("FP8: the recipes, and the GPUs that compute them") {
  REQUIRE(find_fp8_recipe("rowwise"));
  CHECK(find_fp8_recipe("delayed") == nullptr);
  for (const Fp8Recipe& recipe : fp8_recipes) {
    const bool tensorwise = recipe.name == "tensorwise";
    CHECK(fp8_serves(recipe, 80) == false);
    CHECK(fp8_serves(recipe, 89) == tensorwise);
    CHECK(fp8_serves(recipe, 90));
    CHECK(fp8_serves(recipe, 100) == tensorwise);
  }
}

}  // namespace
}  // namespace tally::train
