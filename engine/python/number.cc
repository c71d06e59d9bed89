#include "engine/python/number.h"

#include <charconv>
#include <cstdlib>
#include <string>

#include "engine/base/text.h"

namespace tally {

std::optional<double> python_float(std::string_view text) {
  text = strip(text);
  std::string cleaned;
  if (text.find('_') != std::string_view::npos) {  // allowed between two digits only
    auto digit = [&](size_t at) { return at < text.size() && text[at] >= '0' && text[at] <= '9'; };
    for (size_t i = 0; i < text.size(); ++i) {
      if (text[i] != '_') {
        cleaned += text[i];
      } else if (i == 0 || !digit(i - 1) || !digit(i + 1)) {
        return std::nullopt;
      }
    }
    text = cleaned;
  }
  bool negative = !text.empty() && text.front() == '-';
  if (!text.empty() && (text.front() == '+' || text.front() == '-')) text.remove_prefix(1);
  if (text.empty()) return std::nullopt;
  char first = text.front();
  if (first == '-' || first == '+') return std::nullopt;
  if (first == 'n' || first == 'N') {  // from_chars would also take nan(...)
    if (text.size() != 3) return std::nullopt;
  }
  double value = 0;
  const char* end = text.data() + text.size();
  auto [stop, problem] = std::from_chars(text.data(), end, value, std::chars_format::general);
  if (stop != end) return std::nullopt;
  if (problem == std::errc::result_out_of_range) {
    value = std::strtod(std::string(text).c_str(), nullptr);
  } else if (problem != std::errc()) {
    return std::nullopt;
  }
  return negative ? -value : value;
}

}  // namespace tally
