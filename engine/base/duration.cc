#include "engine/base/duration.h"

#include <array>
#include <cstdlib>
#include <ctime>
#include <map>
#include <vector>

#include "engine/base/text.h"

namespace tally {

namespace {

// "1.5h", or seconds without a unit. Python prints 1e-05 for a small one; 0x10 is a slip.
std::optional<double> number_with_unit(const std::string& text) {
  if (text.empty() || !is_digit(text.front()) || text.find_first_of("xX") != std::string::npos)
    return std::nullopt;
  char* end = nullptr;
  const double number = strtod(text.c_str(), &end);
  if (end == text.c_str() || !(number >= 0)) return std::nullopt;
  const std::string unit(strip(end));
  if (unit.empty() || unit == "s") return number;
  if (unit == "m" || unit == "min") return number * 60;
  if (unit == "h") return number * 3600;
  if (unit == "d") return number * 86400;
  return std::nullopt;
}

// "HH:MM:SS" and "MM:SS"; behind days, as Slurm reads it, "HH", "HH:MM" and "HH:MM:SS".
std::optional<double> clock_time(const std::string& text, bool after_days) {
  const std::vector<std::string> parts = split_strip(text, ":");
  if (parts.size() > 3) return std::nullopt;
  double seconds = 0;
  for (const std::string& part : parts) {
    const auto number = whole_number(part);
    if (!number || *number < 0) return std::nullopt;
    seconds = seconds * 60 + static_cast<double>(*number);
  }
  for (size_t given = parts.size(); after_days && given < 3; ++given) seconds *= 60;
  return seconds;
}

}  // namespace

std::optional<double> parse_duration(const std::string& text) {
  constexpr double kLongest = 1000.0 * 366 * 86400;  // a longer one is a slip
  const std::string trimmed(strip(text));
  std::optional<double> seconds;
  const size_t dash = trimmed.find('-', 1);
  const bool exponent = dash != std::string::npos && (trimmed[dash - 1] | 0x20) == 'e';
  if (dash != std::string::npos && !exponent) {
    const auto days = whole_number(trimmed.substr(0, dash));
    seconds = clock_time(trimmed.substr(dash + 1), true);
    if (!days || *days < 0 || !seconds) return std::nullopt;
    *seconds += static_cast<double>(*days) * 86400;
  } else if (trimmed.find(':') != std::string::npos) {
    seconds = clock_time(trimmed, false);
  } else {
    seconds = number_with_unit(trimmed);
  }
  return seconds && *seconds <= kLongest ? seconds : std::nullopt;
}

std::string local_time(std::time_t seconds, char between) {
  std::tm local{};
  localtime_r(&seconds, &local);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S", &local);
  std::string written = text.data();
  written[written.find(' ')] = between;
  return written;
}

std::optional<double> seconds_of_unit(std::string_view unit) {
  static const std::map<std::string_view, double> units = {{"", 1},
                                                           {"s", 1},
                                                           {"ns", 1e-9},
                                                           {"us", 1e-6},
                                                           {"\xc2\xb5s", 1e-6},
                                                           {"\xce\xbcs", 1e-6},
                                                           {"ms", 1e-3},
                                                           {"min", 60},
                                                           {"h", 3600}};
  const auto found = units.find(unit);
  if (found == units.end()) return std::nullopt;
  return found->second;
}

}  // namespace tally
