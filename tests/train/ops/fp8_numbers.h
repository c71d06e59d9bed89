// FP8 by its definition (Micikevicius et al., arXiv:2209.05433, table 1), in float64: an oracle that
// shares nothing with the program.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>

#include "src/device/tensor.h"

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

}  // namespace tally::train
