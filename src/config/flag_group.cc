#include "src/config/flag_group.h"

#include <charconv>

namespace tally::train {
namespace {

// Python accepts underscores between digits (300_000_000), and so do benchmark files.
std::string without_underscores(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool between_digits = text[i] == '_' && i > 0 && i + 1 < text.size() &&
                                std::isdigit(static_cast<unsigned char>(text[i - 1])) &&
                                std::isdigit(static_cast<unsigned char>(text[i + 1]));
    if (!between_digits) out += text[i];
  }
  return out;
}

}  // namespace

template <typename T>
T parse_number(const std::string& flag, const std::string& given, T least, T most) {
  const std::string text = without_underscores(given);
  T value{};
  const char* first = text.data();
  const char* last = first + text.size();
  if (first != last && *first == '+') ++first;
  const auto [end, error] = std::from_chars(first, last, value);
  const char* kind = std::is_floating_point_v<T> ? "number" : "whole number";
  if constexpr (std::is_unsigned_v<T>) {
    int64_t negative{};
    const auto sign = std::from_chars(first, last, negative);
    if (sign.ec == std::errc() && sign.ptr == last && negative < 0)
      throw CLI::ValidationError(flag, fmt::format("{} is too small: at least {}", given, least));
  }
  if (error == std::errc::result_out_of_range)
    throw CLI::ValidationError(flag, fmt::format("{} is too large", given));
  if (error != std::errc() || end != last)
    throw CLI::ValidationError(flag, fmt::format("'{}' is not a {}", given, kind));
  if constexpr (std::is_floating_point_v<T>) {
    if (!std::isfinite(value))
      throw CLI::ValidationError(flag, fmt::format("'{}' is not a {}", given, kind));
  }
  if (value < least)
    throw CLI::ValidationError(flag, fmt::format("{} is too small: at least {}", given, least));
  if (std::is_floating_point_v<T> && value > most &&
      most == static_cast<T>(std::nextafter(1.0, 0.0)))
    throw CLI::ValidationError(flag, fmt::format("{} is too large: it must be below 1", given));
  if (value > most)
    throw CLI::ValidationError(flag, fmt::format("{} is too large: at most {}", given, most));
  return value;
}

template int parse_number(const std::string&, const std::string&, int, int);
template int64_t parse_number(const std::string&, const std::string&, int64_t, int64_t);
template uint64_t parse_number(const std::string&, const std::string&, uint64_t, uint64_t);
template double parse_number(const std::string&, const std::string&, double, double);

}  // namespace tally::train
