// The angles of rotary positions (Su et al., arXiv:2104.09864) and their scaling to longer texts
// (Llama 3.1; transformers' rope_type "llama3"). One function for CPUs and GPUs.
#pragma once

#include <cmath>
#include <cstdint>

#include "src/device/host_device.h"

namespace tally::train {

// Waves that are long beside the positions of the original training are stretched by `factor`,
// short ones stay, and between `low` and `high` waves in those positions the two are mixed.
struct RotaryScaling {
  double factor = 1;  // 1: no scaling
  double low = 1, high = 4;
  int64_t original_positions = 8192;

  bool on() const { return factor != 1; }
  bool operator==(const RotaryScaling& other) const {
    return factor == other.factor && low == other.low && high == other.high &&
           original_positions == other.original_positions;
  }
};

struct RotaryAngles {
  double base = 10000;
  RotaryScaling scaling = {};
};

// The angle from one position to the next, in radians, of the pair `i` of `half` pairs.
TALLY_HOST_DEVICE double rotary_frequency(const RotaryAngles& a, int64_t i, int64_t half) {
  constexpr double turn = 6.283185307179586476925286766559;  // 2 pi
  const double f = pow(a.base, -static_cast<double>(i) / static_cast<double>(half));
  if (a.scaling.factor == 1) return f;
  const double waves = static_cast<double>(a.scaling.original_positions) * f / turn;
  if (waves > a.scaling.high) return f;
  if (waves < a.scaling.low) return f / a.scaling.factor;
  const double kept = (waves - a.scaling.low) / (a.scaling.high - a.scaling.low);
  return (1 - kept) * f / a.scaling.factor + kept * f;
}

}  // namespace tally::train
