#include "engine/workspace/shell_words.h"

#include <cctype>

namespace tally {
namespace {

bool is_name(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

}  // namespace

std::set<std::string> shell_variables(std::string_view text) {
  std::set<std::string> names;
  for (size_t at = text.find('$'); at != std::string_view::npos; at = text.find('$', at + 1)) {
    size_t begin = at + 1;
    if (begin < text.size() && text[begin] == '{') ++begin;
    size_t end = begin;
    while (end < text.size() && is_name(text[end])) ++end;
    if (end > begin && std::isdigit(static_cast<unsigned char>(text[begin])) == 0) {
      names.emplace(text.substr(begin, end - begin));
    }
  }
  return names;
}

std::string with_variables(std::string_view text, const Environment& environment) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    if (text[at] != '$') {
      out += text[at++];
      continue;
    }
    const bool braces = at + 1 < text.size() && text[at + 1] == '{';
    size_t end = at + (braces ? 2 : 1);
    const size_t begin = end;
    while (end < text.size() && is_name(text[end])) ++end;
    const auto found = environment.find(std::string(text.substr(begin, end - begin)));
    const bool whole = !braces || (end < text.size() && text[end] == '}');
    if (end == begin || !whole || found == environment.end()) {
      out += text[at++];
      continue;
    }
    out += found->second;
    at = end + (braces ? 1 : 0);
  }
  return out;
}

std::vector<std::string> shell_words(const std::string& text) {
  constexpr std::string_view kEnds = " \t\n\r'\"`=;|&<>(),:";
  std::vector<std::string> words;
  for (size_t at = 0; at < text.size();) {
    size_t end = text.find_first_of(kEnds, at);
    if (end == std::string::npos) end = text.size();
    size_t before = at;
    while (before > 0 &&
           (text[before - 1] == ' ' || text[before - 1] == '"' || text[before - 1] == '\'')) {
      --before;
    }
    const bool written = before > 0 && text[before - 1] == '>';
    if (!written && end > at) words.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

}  // namespace tally
