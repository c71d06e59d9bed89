// Chooses the ticks of an axis and writes their labels.
#pragma once

#include <string>
#include <vector>

namespace tally {

struct Tick {
  double value = 0;
  std::string label;
};

// An axis with its range. Values are mapped linearly, or by their logarithm, from `low`..`high`.
struct Scale {
  double low = 0, high = 1;
  bool logarithmic = false;
  // The labels are in units of 10^exponent, and the axis' title says so. 0: as they are.
  int exponent = 0;
  std::vector<Tick> ticks;

  // The place of a value: 0 at `low`, 1 at `high`.
  double at(double value) const;
};

// A linear axis that holds all values from `low` to `high`. Ticks are multiples of 1, 2 or 5 times
// a power of ten, at most about `most` of them. With `round_ends`, the axis begins and ends at
// ticks. Values must be finite; if they are equal, the axis is made wider.
Scale linear_scale(double low, double high, size_t most, bool round_ends);

// A linear axis with ticks at these values alone, which rise.
Scale linear_scale_at(const std::vector<double>& values);

// A logarithmic axis. `low` must be positive. Ticks are powers of ten, or between them 2 and 5
// where the range is small. If `values` is not empty, the ticks are these values.
Scale log_scale(double low, double high, size_t most, const std::vector<double>& values = {});

// "34,063", "0.25", "1.5×10⁷": a value in a label or a tooltip, with six significant digits.
std::string number_label(double value);
// "×10⁶"
std::string power_label(int exponent);

}  // namespace tally
