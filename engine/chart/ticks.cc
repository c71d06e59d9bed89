#include "engine/chart/ticks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace tally {
namespace {

// Puts commas between groups of three digits: "-12345.5" gives "-12,345.5".
std::string grouped(std::string text) {
  const size_t begin = !text.empty() && text[0] == '-' ? 1 : 0;
  size_t end = text.find('.');
  if (end == std::string::npos) end = text.size();
  for (size_t at = end; at > begin + 3; at -= 3) text.insert(at - 3, ",");
  return text;
}

// A number without an exponent and without zeros at its end.
std::string plain(double value, int decimals) {
  std::string text = fmt::format("{:.{}f}", value, std::max(0, decimals));
  if (text.find('.') != std::string::npos) {
    while (text.back() == '0') text.pop_back();
    if (text.back() == '.') text.pop_back();
  }
  return text == "-0" ? "0" : text;
}

std::string superscript(int number) {
  static const char* const digits[] = {"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
  std::string out;
  for (char c : std::to_string(number)) out += c == '-' ? "⁻" : digits[c - '0'];
  return out;
}

// The smallest of 1, 2, 5, 10 times a power of ten that is not below `rough`. `exponent` is that of
// the power.
double nice_step(double rough, int* exponent) {
  *exponent = static_cast<int>(std::floor(std::log10(rough)));
  const double power = std::pow(10.0, *exponent);
  for (double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= rough * (1 - 1e-9)) return factor * power;
  }
  ++*exponent;
  return std::pow(10.0, *exponent);
}

// Labels below 0.001 or of a million and more get a common power of ten, as 3, 6, -6.
int common_exponent(double largest) {
  if (largest == 0 || (largest >= 1e-3 && largest < 1e6)) return 0;
  return static_cast<int>(std::floor(std::log10(largest) / 3.0)) * 3;
}

void widen(double* low, double* high) {
  if (*low < *high && std::isfinite(*high - *low)) {
    const double size = std::max(std::abs(*low), std::abs(*high));
    if (*high - *low > size * 1e-12) return;
  }
  const double by = *low == 0 ? 1 : std::abs(*low) * 0.1;
  *low -= by;
  *high += by;
}

}  // namespace

double Scale::at(double value) const {
  if (logarithmic) return std::log(value / low) / std::log(high / low);
  return (value - low) / (high - low);
}

Scale linear_scale(double low, double high, size_t most, bool round_ends) {
  // Larger numbers would overflow below. No measured value comes near to this.
  constexpr double kLargest = std::numeric_limits<double>::max() / 1e8;
  low = std::clamp(low, -kLargest, kLargest);
  high = std::clamp(high, -kLargest, kLargest);
  widen(&low, &high);
  int exponent = 0;
  const double step =
      nice_step((high - low) / static_cast<double>(std::max<size_t>(most, 1)), &exponent);
  Scale scale;
  const double first = round_ends ? std::floor(low / step + 1e-9) : std::ceil(low / step - 1e-9);
  const double last = round_ends ? std::ceil(high / step - 1e-9) : std::floor(high / step + 1e-9);
  scale.low = round_ends ? first * step : low;
  scale.high = round_ends ? last * step : high;
  scale.exponent = common_exponent(std::max(std::abs(scale.low), std::abs(scale.high)));
  const double unit = std::pow(10.0, scale.exponent);
  const auto count = static_cast<size_t>(std::max(0.0, last - first + 1));
  for (size_t i = 0; i < count; ++i) {
    const double value = (first + static_cast<double>(i)) * step;
    scale.ticks.push_back({value, grouped(plain(value / unit, scale.exponent - exponent))});
  }
  return scale;
}

Scale linear_scale_at(const std::vector<double>& values) {
  Scale scale;
  scale.low = values.front();
  scale.high = values.back();
  widen(&scale.low, &scale.high);
  scale.exponent = common_exponent(std::max(std::abs(scale.low), std::abs(scale.high)));
  const double unit = std::pow(10.0, scale.exponent);
  for (const double value : values) scale.ticks.push_back({value, number_label(value / unit)});
  return scale;
}

Scale log_scale(double low, double high, size_t most, const std::vector<double>& values) {
  Scale scale;
  scale.logarithmic = true;
  if (high <= low * (1 + 1e-9)) {
    low /= 2;
    high *= 2;
  }
  scale.low = low;
  scale.high = high;
  if (!values.empty()) {
    for (double value : values) scale.ticks.push_back({value, number_label(value)});
    return scale;
  }
  const int first = static_cast<int>(std::floor(std::log10(low) + 1e-9));
  const int last = static_cast<int>(std::ceil(std::log10(high) - 1e-9));
  const int decades = last - first;
  const int every = std::max(1, (decades + static_cast<int>(most) - 1) / static_cast<int>(most));
  std::vector<double> factors = {1};
  if (static_cast<size_t>(decades) * 3 <= most + 2) factors = {1, 2, 5};
  for (int power = first; power <= last; power += every) {
    for (double factor : factors) scale.ticks.push_back({factor * std::pow(10.0, power), {}});
  }
  // The axis ends at the ticks around the values.
  auto& ticks = scale.ticks;
  while (ticks.size() > 2 && ticks[1].value <= low * (1 + 1e-9)) ticks.erase(ticks.begin());
  while (ticks.size() > 2 && ticks[ticks.size() - 2].value >= high * (1 - 1e-9)) ticks.pop_back();
  scale.low = std::min(low, ticks.front().value);
  scale.high = std::max(high, ticks.back().value);
  for (Tick& tick : ticks) tick.label = number_label(tick.value);
  return scale;
}

std::string number_label(double value) {
  if (std::isnan(value)) return "not a number";
  if (std::isinf(value)) return value > 0 ? "infinite" : "-infinite";
  const double size = std::abs(value);
  if (size == 0) return "0";
  int exponent = static_cast<int>(std::floor(std::log10(size)));
  // 999,999.7 has six digits and is 10^6 when rounded.
  if (plain(size / std::pow(10.0, exponent), 5) == "10") ++exponent;
  if (exponent >= -4 && exponent < 7) return grouped(plain(value, std::max(0, 5 - exponent)));
  const std::string factor = plain(value / std::pow(10.0, exponent), 5);
  if (factor == "1") return "10" + superscript(exponent);
  return factor + power_label(exponent);
}

std::string power_label(int exponent) {
  return "×10" + superscript(exponent);
}

}  // namespace tally
