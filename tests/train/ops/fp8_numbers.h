// FP8 by its definition (Micikevicius et al., arXiv:2209.05433, table 1) and the scales of operands, in
// float64: an oracle that shares nothing with the program but the names of the scalings.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <vector>

#include "src/device/tensor.h"
#include "src/ops/fp8/scaling.h"

namespace tally::train {

// The number of a byte: sign, exponent and mantissa bits; E4M3 has no infinity and one NaN.
inline double fp8_value(uint8_t byte, DType format) {
  const int mantissa_bits = format == DType::e4m3 ? 3 : 2, bias = format == DType::e4m3 ? 7 : 15;
  const int mantissa = byte & ((1 << mantissa_bits) - 1);
  const int exponent = (byte & 0x7f) >> mantissa_bits;
  const double sign = byte & 0x80 ? -1 : 1, fraction = std::ldexp(mantissa, -mantissa_bits);
  if (format == DType::e4m3 && (byte & 0x7f) == 0x7f)
    return std::numeric_limits<double>::quiet_NaN();
  if (format == DType::e5m2 && exponent == 31)
    return mantissa ? std::numeric_limits<double>::quiet_NaN()
                    : sign * std::numeric_limits<double>::infinity();
  if (exponent == 0) return sign * std::ldexp(fraction, 1 - bias);
  return sign * std::ldexp(1 + fraction, exponent - bias);
}

// The nearest finite number to x, of two the one whose last bit is 0.
inline uint8_t fp8_nearest(double x, DType format) {
  uint8_t best = 0;
  double least = std::numeric_limits<double>::infinity();
  for (int magnitude = 0; magnitude < 0x80; ++magnitude) {
    const auto byte = static_cast<uint8_t>(magnitude | (std::signbit(x) ? 0x80 : 0));
    const double value = fp8_value(byte, format);
    if (!std::isfinite(value)) continue;
    const double distance = std::fabs(value - x);
    if (distance < least || (distance == least && byte % 2 == 0)) {
      least = distance;
      best = byte;
    }
  }
  return best;
}

// Where the scale of number (r, k) of an operand [rows, inner] lies.
inline size_t fp8_scale_place(Fp8Scaling scaling, int64_t rows, int64_t inner, int64_t r,
                              int64_t k) {
  switch (scaling) {
    case Fp8Scaling::tensor:
      return 0;
    case Fp8Scaling::row:
      return static_cast<size_t>(r);
    case Fp8Scaling::vector128:
      return static_cast<size_t>(k / 128 * rows + r);
    case Fp8Scaling::block128:
      return static_cast<size_t>(r / 128 * ((inner + 511) / 512 * 4) + k / 128);
  }
  return 0;
}

// The scale of numbers of up to this magnitude: of a tensor its quotient in float32, else the smallest
// power of two that keeps them within the format.
inline double fp8_scale(double amax, DType format, Fp8Scaling scaling) {
  const double largest = format == DType::e4m3 ? 448 : 57344;
  const double used = std::fmax(amax, 1e-30F);
  if (scaling == Fp8Scaling::tensor) return static_cast<float>(used) / static_cast<float>(largest);
  int exponent = 0;
  const double fraction = std::frexp(used / largest, &exponent);
  return std::ldexp(1, fraction == 0.5 ? exponent - 1 : exponent);
}

// An operand's scales by place.
inline std::map<size_t, double> fp8_scales(const std::vector<double>& x, int64_t rows, DType format,
                                           Fp8Scaling scaling) {
  const auto inner = static_cast<int64_t>(x.size()) / rows;
  std::map<size_t, double> scales;
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t k = 0; k < inner; ++k) {
      double& largest = scales[fp8_scale_place(scaling, rows, inner, r, k)];
      largest = std::fmax(largest, std::fabs(x[static_cast<size_t>(r * inner + k)]));
    }
  for (auto& [place, scale] : scales) scale = fp8_scale(scale, format, scaling);
  return scales;
}

inline std::vector<double> transposed(const std::vector<double>& x, int64_t rows) {
  const auto n = static_cast<size_t>(rows), columns = x.size() / n;
  std::vector<double> y(x.size());
  for (size_t i = 0; i < n; ++i)
    for (size_t j = 0; j < columns; ++j) y[j * n + i] = x[i * columns + j];
  return y;
}

}  // namespace tally::train
