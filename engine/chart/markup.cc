#include "engine/chart/markup.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "engine/base/text.h"

namespace tally {
namespace {

// Hundredths of the font's size, for the characters from blank to tilde: DejaVu Sans 2.37.
constexpr std::array<uint8_t, 95> kWidths = {
    32, 40, 46, 84, 64, 95, 78, 27, 39,  39, 50, 84, 32, 36, 32, 34, 64, 64, 64, 64, 64, 64, 64, 64,
    64, 64, 34, 34, 84, 84, 84, 53, 100, 68, 69, 70, 77, 63, 58, 77, 75, 29, 29, 66, 56, 86, 75, 79,
    60, 79, 69, 63, 61, 73, 68, 99, 69,  61, 69, 39, 34, 39, 84, 50, 50, 61, 63, 55, 63, 62, 35, 63,
    63, 28, 28, 58, 28, 97, 63, 61, 63,  63, 41, 52, 39, 63, 59, 82, 59, 59, 52, 64, 34, 64, 84};

double width_of(uint32_t code) {
  if (code >= 0x20 && code < 0x7f) return kWidths[code - 0x20] / 100.0;
  if (code >= 0x300 && code < 0x370) return 0;  // combining marks
  // Superscripts of numbers.
  if (code == 0xb2 || code == 0xb3 || code == 0xb9 || (code >= 0x2070 && code < 0x2090))
    return 0.42;
  return code < 0x1100 ? 0.85 : 1.0;  // letters of other alphabets; East Asian characters
}

bool allowed(uint32_t code) {
  return code == '\n' || code == '\t' || (code >= 0x20 && code < 0x7f) ||
         (code >= 0xa0 && code != 0xfffe && code != 0xffff);
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    uint32_t code = 0;
    const size_t length = utf8_length(text, &code);
    if (length == 0 || !allowed(code)) {
      out += "\xef\xbf\xbd";
    } else {
      out.append(text.substr(0, length));
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return xml_escaped(out, "&<>\"");
}

double text_width(std::string_view text) {
  double width = 0;
  while (!text.empty()) {
    uint32_t code = 0;
    const size_t length = utf8_length(text, &code);
    width += length == 0 ? 1.0 : width_of(code);
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return width;
}

std::string shortened(std::string_view text, double width) {
  if (text_width(text) <= width) return std::string(text);
  std::string out;
  double used = 1;  // the ellipsis
  while (!text.empty()) {
    const size_t length = std::max<size_t>(1, utf8_length(text));
    used += text_width(text.substr(0, length));
    if (used > width) break;
    out.append(text.substr(0, length));
    text.remove_prefix(length);
  }
  return out + "…";
}

}  // namespace tally
