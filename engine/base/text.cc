#include "engine/base/text.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>

namespace tally {
namespace {

constexpr std::string_view kSpace = " \t\n\r\f\v";

// The largest edit distance for a suggestion: a third of the name's length, at least one.
size_t allowed_distance(std::string_view name) {
  return std::max<size_t>(1, (name.size() + 1) / 3);
}

}  // namespace

std::string_view strip(std::string_view text) {
  size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

std::vector<std::string> split_strip(std::string_view text, std::string_view separator) {
  std::vector<std::string> pieces;
  if (separator.empty()) {
    pieces.emplace_back(text);
    return pieces;
  }
  size_t from = 0;
  for (;;) {
    size_t to = text.find(separator, from);
    pieces.emplace_back(strip(text.substr(from, to == std::string_view::npos ? to : to - from)));
    if (to == std::string_view::npos) return pieces;
    from = to + separator.size();
  }
}

std::string one_line(std::string_view text) {
  std::string line;
  for (const char c : strip(text)) {
    const bool blank = kSpace.find(c) != std::string_view::npos;
    if (!blank) {
      line += c;
    } else if (line.back() != ' ') {
      line += ' ';
    }
  }
  return line;
}

std::string join(const std::vector<std::string>& parts, std::string_view separator) {
  std::string joined;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) joined += separator;
    joined += parts[i];
  }
  return joined;
}

std::string counted(size_t count, const char* one, const char* several) {
  return std::to_string(count) + ' ' + (count == 1 ? one : several);
}

std::string first_line(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

bool starts_with(std::string_view text, std::string_view prefix) {
  return text.substr(0, prefix.size()) == prefix;
}

std::optional<long long> whole_number(const std::string& text) {
  char* end = nullptr;
  errno = 0;
  const long long number = strtoll(text.c_str(), &end, 10);
  if (text.empty() || *end != '\0' || errno == ERANGE) return std::nullopt;
  return number;
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  if (from.empty()) return;
  std::string result;
  size_t at = 0;
  for (;;) {
    const size_t found = text.find(from, at);
    if (found == std::string::npos) break;
    result.append(text, at, found - at).append(to);
    at = found + from.size();
  }
  if (at == 0) return;
  text = result.append(text, at, std::string::npos);
}

std::string padded_id(int id) {
  std::array<char, 16> text{};
  snprintf(text.data(), text.size(), "%06d", id);
  return text.data();
}

std::string to_lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

size_t edit_distance(std::string_view a, std::string_view b) {
  // Three rows of the alignment table are needed, because a swap looks two rows back.
  std::vector<size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      size_t change = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({change, last[j] + 1, row[j - 1] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
    before.swap(last);
    last.swap(row);
  }
  return last[b.size()];
}

std::string nearest(std::string_view name, const std::vector<std::string>& candidates) {
  constexpr size_t kLongest = 200;  // longer texts are not names
  if (name.empty() || name.size() > kLongest) return {};
  const std::string lower = to_lower(name);
  size_t allowed = allowed_distance(name);
  std::string best;
  for (const std::string& candidate : candidates) {
    size_t difference = candidate.size() > name.size() ? candidate.size() - name.size()
                                                       : name.size() - candidate.size();
    if (difference > allowed || candidate.empty() || candidate == name) continue;
    size_t distance = edit_distance(lower, to_lower(candidate));
    if (distance >= std::max(name.size(), candidate.size())) continue;  // nothing in common
    if (distance < allowed || (distance == allowed && best.empty())) {
      allowed = distance;
      best = candidate;
    }
  }
  return best;
}

std::string did_you_mean(std::string_view name, const std::vector<std::string>& candidates) {
  std::string best = nearest(name, candidates);
  return best.empty() ? best : "did you mean '" + best + "'?";
}

std::string shell_quote(std::string_view word) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+./:,@%";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string_view::npos) {
    return std::string(word);
  }
  std::string quoted = "'";
  for (char c : word) {
    if (c == '\'') {
      quoted += "'\\''";
    } else {
      quoted += c;
    }
  }
  return quoted + "'";
}

size_t code_points(std::string_view text) {
  return static_cast<size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

std::string xml_escaped(std::string_view text, std::string_view special) {
  std::string out;
  for (const char c : text) {
    if (!is_one_of(special, c)) {
      out += c;
      continue;
    }
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += "&#" + std::to_string(c) + ';';
    }
  }
  return out;
}

size_t utf8_length(std::string_view text, uint32_t* code_point) {
  if (text.empty()) return 0;
  auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  size_t length = 0;
  uint32_t code = byte(0);
  uint32_t smallest = 0;
  if (code < 0x80) {
    length = 1;
  } else if (code >= 0xC2 && code < 0xE0) {
    length = 2, code &= 0x1F, smallest = 0x80;
  } else if (code >= 0xE0 && code < 0xF0) {
    length = 3, code &= 0x0F, smallest = 0x800;
  } else if (code >= 0xF0 && code < 0xF5) {
    length = 4, code &= 0x07, smallest = 0x10000;
  } else {
    return 0;
  }
  if (text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
    code = (code << 6) | (byte(i) & 0x3F);
  }
  if (code < smallest || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) return 0;
  if (code_point) *code_point = code;
  return length;
}

std::string double_quoted(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\' || c == '`') quoted += '\\';
    quoted += c;
  }
  return quoted + "\"";
}

namespace {

constexpr uint32_t kBytes = 0x10FE00;  // and the byte
constexpr size_t kCharacterOfByte = 4;

bool stands_for_byte(uint32_t code) {
  return code >= kBytes + 0x80 && code <= kBytes + 0xFF;
}

}  // namespace

void append_utf8(uint32_t code, std::string& out) {
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xC0 | (code >> 6));
    out += static_cast<char>(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    out += static_cast<char>(0xE0 | (code >> 12));
    out += static_cast<char>(0x80 | ((code >> 6) & 0x3F));
    out += static_cast<char>(0x80 | (code & 0x3F));
  } else {
    out += static_cast<char>(0xF0 | (code >> 18));
    out += static_cast<char>(0x80 | ((code >> 12) & 0x3F));
    out += static_cast<char>(0x80 | ((code >> 6) & 0x3F));
    out += static_cast<char>(0x80 | (code & 0x3F));
  }
}

size_t text_length(std::string_view bytes) {
  if (static_cast<unsigned char>(bytes.front()) < 0x80) return 1;
  uint32_t code = 0;
  const size_t length = utf8_length(bytes, &code);
  return stands_for_byte(code) ? 0 : length;
}

void append_byte_as_text(char byte, std::string& out) {
  append_utf8(kBytes + static_cast<unsigned char>(byte), out);
}

std::string text_of_bytes(std::string_view bytes) {
  std::string text;
  while (!bytes.empty()) {
    const size_t length = text_length(bytes);
    if (length == 0) {
      append_byte_as_text(bytes.front(), text);
    } else {
      text += bytes.substr(0, length);
    }
    bytes.remove_prefix(length == 0 ? 1 : length);
  }
  return text;
}

std::string bytes_of_text(std::string_view text) {
  std::string bytes;
  for (size_t at = 0; at < text.size(); ++at) {
    uint32_t code = 0;
    const bool candidate = text[at] == '\xF4';
    if (candidate && utf8_length(text.substr(at), &code) == kCharacterOfByte &&
        stands_for_byte(code)) {
      bytes += static_cast<char>(code - kBytes);
      at += kCharacterOfByte - 1;
    } else {
      bytes += text[at];
    }
  }
  return bytes;
}

}  // namespace tally
