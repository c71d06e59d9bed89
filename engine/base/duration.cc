#include "engine/base/duration.h"

#include <cstdlib>
#include <vector>

#include "engine/base/text.h"

namespace tally {
namespace {

std::optional<long long> whole_number(const std::string& text) {
  char* end = nullptr;
  const long long number = strtoll(text.c_str(), &end, 10);
  if (text.empty() || *end != '\0') return std::nullopt;
  return number;
}

}  // namespace

std::optional<double> parse_duration(const std::string& text) {
  const std::string trimmed(strip(text));
  if (trimmed.empty()) return std::nullopt;
  if (trimmed.find(':') == std::string::npos) {
    char* end = nullptr;
    const double number = strtod(trimmed.c_str(), &end);
    if (end == trimmed.c_str() || !(number >= 0)) return std::nullopt;
    const std::string unit(strip(end));
    if (unit.empty() || unit == "s") return number;
    if (unit == "m" || unit == "min") return number * 60;
    if (unit == "h") return number * 3600;
    if (unit == "d") return number * 86400;
    return std::nullopt;
  }
  double days = 0;
  std::string clock = trimmed;
  if (const size_t dash = trimmed.find('-'); dash != std::string::npos) {
    const auto number = whole_number(trimmed.substr(0, dash));
    if (!number || *number < 0) return std::nullopt;
    days = static_cast<double>(*number);
    clock = trimmed.substr(dash + 1);
  }
  double seconds = 0;
  const std::vector<std::string> parts = split_strip(clock, ":");
  if (parts.size() > 3) return std::nullopt;
  for (const std::string& part : parts) {
    const auto number = whole_number(part);
    if (!number || *number < 0) return std::nullopt;
    seconds = seconds * 60 + static_cast<double>(*number);
  }
  return days * 86400 + seconds;
}

}  // namespace tally
