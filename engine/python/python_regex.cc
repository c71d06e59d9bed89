#include "engine/python/python_regex.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "engine/base/text.h"

namespace tally {
namespace {

bool is_octal(char c) {
  return c >= '0' && c <= '7';
}
constexpr std::string_view kFlags = "aiLmsux-";

class Translator {
 public:
  explicit Translator(std::string_view pattern) : in_(pattern) {}

  TranslatedRegex run() {
    while (at_ < in_.size() && out_.error.empty()) step();
    if (out_.error.empty() && in_class_) fail("unterminated character set", class_start_);
    return std::move(out_);
  }

 private:
  char peek(size_t ahead = 0) const { return at_ + ahead < in_.size() ? in_[at_ + ahead] : '\0'; }
  bool left(size_t count) const { return at_ + count <= in_.size(); }
  void fail(std::string message, size_t where) {
    if (!out_.error.empty()) return;
    out_.error = std::move(message);
    out_.error_at = where;
  }
  void copy(size_t count) {
    out_.pcre.append(in_.substr(at_, count));
    at_ += count;
  }

  void step() {
    char c = in_[at_];
    if (static_cast<unsigned char>(c) >= 128) out_.non_ascii = true;
    if (c == '\\') {
      escape();
    } else if (in_class_) {
      inside_class(c);
    } else if (c == '[') {
      open_class();
    } else if (c == '(') {
      group();
    } else if (c == '{') {
      braces();
    } else if (c == '#' && out_.verbose) {
      size_t end = std::min(in_.find('\n', at_), in_.size());
      at_ = end;
    } else {
      copy(1);
    }
  }

  void open_class() {
    class_start_ = at_;
    in_class_ = true;
    copy(1);
    if (peek() == '^') copy(1);
    if (peek() == ']') {
      out_.pcre += '\\';
      copy(1);
    }
  }
  void inside_class(char c) {
    if (c == '[') out_.pcre += '\\';
    if (c == ']') in_class_ = false;
    copy(1);
  }

  // {,n} starts at zero in Python. Every other brace has the same meaning in both dialects.
  void braces() {
    size_t i = at_ + 1;
    if (i < in_.size() && in_[i] == ',') {
      size_t end = i + 1;
      while (end < in_.size() && is_digit(in_[end])) ++end;
      if (end < in_.size() && in_[end] == '}') {
        out_.pcre += "{0";
        at_ = i;
        return;
      }
    }
    copy(1);
  }

  void group() {
    size_t start = at_;
    if (peek(1) == '*') return fail("nothing to repeat", start + 1);
    if (peek(1) != '?') return copy(1);
    char kind = peek(2);
    if (kind == 'P') {
      if (peek(3) != '<' && peek(3) != '=') {
        return fail(fmt::format("unknown extension ?P{}", peek(3)), start + 1);
      }
      return copy(4);
    }
    if (kind == '#') {  // a comment may hold any text
      size_t end = in_.find(')', at_);
      if (end == std::string_view::npos) {
        return fail("missing ), unterminated comment", start);
      }
      at_ = end + 1;
      return;
    }
    if (kind == '<') {
      if (peek(3) != '=' && peek(3) != '!') {
        return fail(fmt::format("unknown extension ?<{}", peek(3)), start + 1);
      }
      return copy(4);
    }
    if (kind == ':' || kind == '=' || kind == '!' || kind == '>') return copy(3);
    if (kind == '(') return copy(2);  // (?(1)yes|no): the inner parenthesis is copied next
    flags(start);
  }

  void flags(size_t start) {
    size_t i = at_ + 2;
    std::string local;
    bool removing = false;
    bool ascii = false;
    while (i < in_.size() && kFlags.find(in_[i]) != std::string_view::npos) {
      char c = in_[i++];
      if (c == '-') {
        removing = true;
        local += '-';
      } else if (c == 'a') {
        ascii = true;
      } else if (c != 'L' && c != 'u') {
        local += c;
      }
    }
    if (i == at_ + 2 || i >= in_.size() || (in_[i] != ')' && in_[i] != ':')) {
      return fail(fmt::format("unknown extension ?{}", i < in_.size() ? in_[i] : ' '), start + 1);
    }
    if (ascii) out_.ascii_classes = true;
    if (in_[i] == ':') {
      out_.pcre += "(?" + local + ":";
    } else if (removing) {
      return fail("missing :", i);
    } else {
      for (char c : local) {
        out_.ignore_case = out_.ignore_case || c == 'i';
        out_.dot_all = out_.dot_all || c == 's';
        out_.verbose = out_.verbose || c == 'x';
      }
    }
    at_ = i + 1;
  }

  void character(uint32_t code, size_t consumed) {
    out_.pcre += fmt::format("\\x{{{:x}}}", code);
    if (code > 127) out_.non_ascii = true;
    at_ += consumed;
  }
  void hex(size_t digits) {
    for (size_t i = 0; i < digits; ++i) {
      if (!left(3 + i) || !is_hex_digit(in_[at_ + 2 + i])) {
        return fail(fmt::format("incomplete escape {}", in_.substr(at_, 2 + i)), at_);
      }
    }
    auto code =
        static_cast<uint32_t>(std::stoul(std::string(in_.substr(at_ + 2, digits)), nullptr, 16));
    if (code > 0x10FFFF) return fail("bad escape: beyond Unicode", at_);
    character(code, 2 + digits);
  }
  void octal(size_t most) {
    size_t digits = 0;
    uint32_t code = 0;
    while (digits < most && left(2 + digits) && is_octal(in_[at_ + 1 + digits])) {
      code = code * 8 + static_cast<uint32_t>(in_[at_ + 1 + digits] - '0');
      ++digits;
    }
    if (code > 0377) return fail("octal escape value outside of range 0-0o377", at_);
    character(code, 1 + digits);
  }
  void number() {
    if (peek(1) == '0') return octal(3);
    bool three = is_octal(peek(1)) && is_octal(peek(2)) && is_octal(peek(3));
    if (three) return octal(3);
    if (in_class_) {
      if (!is_octal(peek(1))) return fail(fmt::format("bad escape \\{}", peek(1)), at_);
      return octal(3);
    }
    size_t digits = is_digit(peek(2)) ? 2 : 1;
    out_.pcre += fmt::format("\\g{{{}}}", in_.substr(at_ + 1, digits));
    at_ += 1 + digits;
  }

  void escape() {
    if (!left(2)) return fail("bad escape (end of pattern)", at_);
    char c = peek(1);
    if (is_digit(c)) return number();
    if (c == 'x') return hex(2);
    if (c == 'u') return hex(4);
    if (c == 'U') return hex(8);
    if (c == 'v') return character(0x0B, 2);
    if (c == 's' && !out_.ascii_classes) {
      out_.pcre += in_class_ ? "\\s\\x1c-\\x1f" : "[\\s\\x1c-\\x1f]";
      at_ += 2;
      return;
    }
    if (c == 'S' && !out_.ascii_classes && !in_class_) {
      out_.pcre += "[^\\s\\x1c-\\x1f]";
      at_ += 2;
      return;
    }
    if (c == 'Z' && !in_class_) {
      out_.pcre += "\\z";
      at_ += 2;
      return;
    }
    constexpr std::string_view kAnywhere = "abdDwWfnrtsS";
    bool known =
        kAnywhere.find(c) != std::string_view::npos || (!in_class_ && (c == 'A' || c == 'B'));
    if (is_letter(c) && !known) return fail(fmt::format("bad escape \\{}", c), at_);
    if (static_cast<unsigned char>(c) >= 128) out_.non_ascii = true;
    copy(2);
  }

  std::string_view in_;
  size_t at_ = 0;
  bool in_class_ = false;
  size_t class_start_ = 0;
  TranslatedRegex out_;
};

}  // namespace

TranslatedRegex translate_python_regex(std::string_view pattern) {
  return Translator(pattern).run();
}

}  // namespace tally
