#include "src/ops/fp8/fp8.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "tests/train/ops/fp8_numbers.h"
#include "tests/train/ops/numbers.h"

namespace tally::train {
namespace {

constexpr DType formats[] = {DType::e4m3, DType::e5m2};

// A matrix cast to FP8, and what it was cast from.
struct Cast {
  Cast(const In& x, DType format)
      : rows_bytes(static_cast<size_t>(x.numel())), columns_bytes(rows_bytes.size()) {
    const auto stream = make_stream(Device{});
    const int64_t height = x.dim(0), width = x.dim(1);
    const Tensor largest(&amax, DType::f32, {1});
    copies = {Tensor(rows_bytes.data(), format, {height, width}),
              Tensor(columns_bytes.data(), format, {width, height}),
              Tensor(&scale, DType::f32, {1})};
    fp8_amax(*stream, x, Out(largest));
    fp8_cast(*stream, x, largest, copies);
  }
  Cast(const Cast&) = delete;
  Cast& operator=(const Cast&) = delete;
  double value(size_t i) const { return fp8_value(rows_bytes[i], copies.rows.dtype) * scale; }
  Fp8Matrix rows() const { return {copies.rows, copies.scale}; }

  std::vector<uint8_t> rows_bytes, columns_bytes;
  float amax = -1, scale = -1;
  Fp8Copies copies;
};

// Against the oracle: each byte the nearest number to x / scale, in both copies.
void check_nearest(const Rounded& x, const Cast& cast) {
  const std::vector<double> values = x.get();
  const DType format = cast.copies.rows.dtype;
  const int64_t height = x.t().dim(0), width = x.t().dim(1);
  const float multiplier = largest_of(format) / std::max(cast.amax, smallest_amax);
  for (int64_t i = 0; i < height; ++i)
    for (int64_t j = 0; j < width; ++j) {
      const auto at = static_cast<size_t>(i * width + j);
      const double scaled = static_cast<float>(values[at]) * multiplier;
      INFO(dtype_name(format), " ", i, " ", j, ": ", values[at]);
      REQUIRE(int{cast.rows_bytes[at]} == int{fp8_nearest(scaled, format)});
      REQUIRE(cast.columns_bytes[static_cast<size_t>(j * height + i)] == cast.rows_bytes[at]);
    }
}

TEST_CASE("FP8: a cast gives the nearest numbers, rows and columns, for every type") {
  for (const DType format : formats)
    for (const DType type : {DType::f64, DType::f32, DType::bf16, DType::f16}) {
      Numbers x({48, 32}, 7, 0.3);
      x[5] = 0;
      x[6] = -0.0;
      x[7] = 1e-7;  // becomes 0 or the smallest number
      const Rounded rounded(x, type);
      const Cast cast(rounded, format);
      check_nearest(rounded, cast);
      double largest = 0;
      for (const double v : rounded.get()) largest = std::max(largest, std::fabs(v));
      CHECK(cast.amax == static_cast<float>(largest));
      CHECK(cast.scale == cast.amax / largest_of(format));
    }
}

TEST_CASE("FP8: one huge number takes the whole range, and nothing saturates") {
  for (const DType format : formats) {
    Numbers x({16, 16}, 3);
    x[17] = -3e30;
    const Rounded rounded(x, DType::bf16);
    const Cast cast(rounded, format);
    check_nearest(rounded, cast);
    CHECK(fp8_value(cast.rows_bytes[17], format) == -largest_of(format));
    CHECK(cast.value(17) == doctest::Approx(rounded.get()[17]).epsilon(1e-6));
    CHECK(cast.value(18) == 0);  // what is smaller by more than the format's range
  }
}

TEST_CASE("FP8: zeros stay zeros, and what is smaller than any scale becomes zero") {
  for (const double value : {0.0, 1e-38}) {
    Numbers x({16, 16}, 0);
    for (double& v : x.values()) v = value;
    const Cast cast(Rounded(x, DType::f32), DType::e4m3);
    CHECK(cast.scale == smallest_amax / 448);
    for (const uint8_t byte : cast.rows_bytes) CHECK(int{byte} == 0);
  }
}

TEST_CASE("FP8: a NaN or an infinity reaches the result, whatever the other numbers are") {
  const auto stream = make_stream(Device{});
  for (const DType format : formats)
    for (const double bad :
         {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(),
          -std::numeric_limits<double>::infinity()}) {
      Numbers x({16, 16}, 5), y({16, 16}, 0);
      x[33] = bad;
      const Cast a(Rounded(x, DType::bf16), format);
      const Cast b(Rounded(Numbers({16, 16}, 6), DType::bf16), DType::e4m3);
      fp8_gemm(*stream, a.rows(), b.rows(), Out(y.t()), {});
      INFO(bad);
      CHECK(std::isnan(y[2 * 16]));  // the row of x that has it
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

TEST_CASE("FP8: a GEMM is the product of the cast numbers, with its bias and what it adds to") {
  const auto stream = make_stream(Device{});
  constexpr int64_t m = 32, n = 48, k = 64;
  for (const DType format : formats) {
    const Cast a(Rounded(Numbers({m, k}, 1), DType::bf16), format);
    const Cast b(Rounded(Numbers({n, k}, 2, 0.02), DType::bf16), DType::e4m3);
    const std::vector<double> plain = product(a, b, m, n, k);
    const Numbers bias({n}, 3), addend({m, n}, 4);
    for (const bool with_bias : {false, true})
      for (const bool adds : {false, true}) {
        std::vector<double> want = plain;
        for (size_t i = 0; i < want.size(); ++i)
          want[i] += (with_bias ? bias[i % n] : 0) + (adds ? addend[i] : 0);
        for (const DType type : {DType::f64, DType::f32, DType::bf16}) {
          const Rounded y(adds ? addend : zeros({m, n}), type), b32(bias, type);
          fp8_gemm(*stream, a.rows(), b.rows(), Out(y.t()),
                   {with_bias ? In(b32) : In(), adds ? In(y) : In(), false});
          CHECK(relative_error(y.get(), want) < (type == DType::bf16 ? 4e-3 : 1e-6));
        }
      }
    // Beside the numbers themselves: within the format's half step, 2^-4 or 2^-3 of each factor.
    CHECK(relative_error(plain, product(Cast(Rounded(Numbers({m, k}, 1), DType::bf16), DType::e4m3),
                                        b, m, n, k)) < 0.08);
  }
}

}  // namespace
}  // namespace tally::train
