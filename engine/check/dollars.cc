#include "engine/check/dollars.h"

#include <algorithm>

#include "engine/base/ascii.h"
#include "engine/base/text.h"

namespace tally {

std::vector<DollarName> dollar_names(std::string_view text) {
  std::vector<DollarName> names;
  for (size_t i = 0; i + 1 < text.size(); ++i) {
    if (text[i] != '$') continue;
    if (i > 0 && text[i - 1] == '\\') continue;
    if (text[i + 1] == '$') {
      ++i;
      continue;
    }
    size_t start = i + 1;
    bool braces = text[start] == '{';
    if (braces) ++start;
    size_t end = start;
    while (end < text.size() && is_name_char(text[end])) ++end;
    if (end == start || !is_name_start(text[start])) continue;
    // ${name:-x} and similar forms belong to the shell.
    if (braces && (end == text.size() || text[end] != '}')) continue;
    names.push_back(
        {std::string(text.substr(start, end - start)), std::string(text.substr(i, end - i)), i});
  }
  return names;
}

Mark place_of(const Sources& sources, const Mark& mark, const std::string& written) {
  constexpr uint32_t kLines = 200;
  const bool word = is_name_char(written.front());
  for (uint32_t line = mark.line; mark.known() && line < mark.line + kLines; ++line) {
    const std::string_view text = sources.line({mark.file, line, 1});
    for (size_t at = text.find(written); at != std::string_view::npos;
         at = text.find(written, at + 1)) {
      const size_t end = at + written.size();
      const bool whole = (end >= text.size() || !is_name_char(text[end])) &&
                         (!word || at == 0 || !is_name_char(text[at - 1]));
      uint32_t column = 1;
      for (size_t i = 0; i < at; ++column) {
        i += std::max<size_t>(1, utf8_length(text.substr(i)));
      }
      if (whole && (line > mark.line || column >= mark.column)) return {mark.file, line, column};
    }
  }
  return mark;
}

}  // namespace tally
