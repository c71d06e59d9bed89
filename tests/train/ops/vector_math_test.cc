// The exponential and the sums that the CPU's loops are made of, against the C library's in double.
#include "src/device/cpu/vector_math.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <vector>

using namespace tally::train::cpu;

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

TALLY_CLONES void exponentials(const float* x, size_t n, float* y) {
  for (size_t i = 0; i < n; ++i) y[i] = exponential(x[i]);
}

TEST_CASE("exponential is within two units in the last place, down to the smallest number") {
  std::vector<float> x;
  for (float v = -104; v < 88.7F; v += 0.00137F) x.push_back(v);
  std::vector<float> y(x.size());
  exponentials(x.data(), x.size(), y.data());
  double worst = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double want = std::exp(static_cast<double>(x[i]));
    const float next = std::nextafter(static_cast<float>(want), infinity);
    const double unit = static_cast<double>(next) - static_cast<double>(static_cast<float>(want));
    worst = std::max(worst, std::abs(static_cast<double>(y[i]) - want) / unit);
  }
  CHECK(worst < 2);
}

TEST_CASE("exponential of what is out of range, infinite or not a number") {
  const std::vector<float> x{-infinity, -1000, -105, 0, 89, 1000, infinity};
  std::vector<float> y(x.size());
  exponentials(x.data(), x.size(), y.data());
  CHECK(y == std::vector<float>{0, 0, 0, 1, infinity, infinity, infinity});
  for (const float nan : {std::nanf(""), -std::nanf("")}) {
    std::vector<float> values(16, nan), out(16);
    exponentials(values.data(), values.size(), out.data());
    CHECK(std::all_of(out.begin(), out.end(), [](float v) { return std::isnan(v); }));
  }
}

TEST_CASE("sums and maxima of every length") {
  std::vector<float> x;
  double sum = 0;
  float most = -infinity;
  for (int n = 0; n < 70; ++n) {
    CHECK(sum_in_lanes(n, [&](int64_t i) { return x[static_cast<size_t>(i)]; }) == sum);
    CHECK(maximum(x.data(), n) == most);
    x.push_back(static_cast<float>((n * 37) % 101 - 50));
    sum += static_cast<double>(x.back());
    most = std::max(most, x.back());
  }
}

}  // namespace
