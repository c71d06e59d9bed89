#include "engine/base/mark.h"

#include <utility>

namespace tally {

uint32_t Sources::add(std::string name, std::string text) {
  files_.push_back({std::move(name), std::move(text)});
  return static_cast<uint32_t>(files_.size() - 1);
}

std::string_view Sources::line(const Mark& mark) const {
  if (!mark.known() || mark.file >= files_.size()) return {};
  std::string_view rest = files_[mark.file].text;
  for (uint32_t line = 1; line < mark.line; ++line) {
    size_t end = rest.find('\n');
    if (end == std::string_view::npos) return {};
    rest.remove_prefix(end + 1);
  }
  rest = rest.substr(0, rest.find('\n'));
  if (!rest.empty() && rest.back() == '\r') rest.remove_suffix(1);
  return rest;
}

}  // namespace tally
