// Values of records: what is not known or not given is null.
#pragma once

#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace tally::train {

inline nlohmann::ordered_json text_or_null(const std::string& text) {
  return text.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(text);
}

template <typename T>
nlohmann::ordered_json value_or_null(const std::optional<T>& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json(nullptr);
}

// JSON has no NaN or infinity.
inline nlohmann::ordered_json finite_or_null(double value) {
  return std::isfinite(value) ? nlohmann::ordered_json(value) : nlohmann::ordered_json(nullptr);
}

// A whole number as readers of counts expect it: 216320, not 216320.0.
inline nlohmann::ordered_json whole_or_not(double value) {
  if (value != std::floor(value) || std::abs(value) > 1e15) return finite_or_null(value);
  return static_cast<int64_t>(value);
}

inline nlohmann::ordered_json json_of(const std::string& text) {
  return text_or_null(text);
}
template <typename T>
nlohmann::ordered_json json_of(const T& value) {
  return value;
}
template <typename T>
nlohmann::ordered_json json_of(const std::optional<T>& value) {
  return value_or_null(value);
}

}  // namespace tally::train
