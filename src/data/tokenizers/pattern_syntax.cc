#include "src/data/tokenizers/pattern_syntax.h"

#include <fmt/format.h>

#include <cstdint>
#include <set>
#include <stdexcept>

#include "src/data/text/unicode_text.h"

namespace tally::train {
namespace {

bool is_ascii_letter(char32_t c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
bool is_digit(char32_t c) {
  return c >= '0' && c <= '9';
}

std::string literal_of(char32_t c) {
  if (is_ascii_letter(c) || is_digit(c)) return {static_cast<char>(c)};
  return fmt::format("\\x{{{:02x}}}", static_cast<uint32_t>(c));
}

// Unicode's general categories by their short names. Scripts are not among them: PCRE2 takes the
// extensions of a script, Oniguruma does not.
bool is_category(const std::string& name) {
  static const std::set<std::string> known = {"L",  "Lu", "Ll", "Lt", "Lm", "Lo", "M",  "Mn", "Mc",
                                              "Me", "N",  "Nd", "Nl", "No", "P",  "Pc", "Pd", "Ps",
                                              "Pe", "Pi", "Pf", "Po", "S",  "Sm", "Sc", "Sk", "So",
                                              "Z",  "Zs", "Zl", "Zp", "C",  "Cc", "Cf", "Cn", "Co"};
  return known.count(name) > 0;
}

// The characters that are not white space, of which a class within a class would be needed else.
constexpr std::string_view kOther =
    "\\x{00}-\\x{08}\\x{0e}-\\x{1f}\\x{21}-\\x{84}\\x{86}-\\x{9f}\\x{a1}-\\x{167f}\\x{1681}-"
    "\\x{1fff}\\x{200b}-\\x{2027}\\x{202a}-\\x{202e}\\x{2030}-\\x{205e}\\x{2060}-\\x{2fff}"
    "\\x{3001}-\\x{10ffff}";

constexpr int kDeepest = 100;  // groups within groups

// Two letters that are also one: without case, Oniguruma lets "ss" match U+00DF, and PCRE2 does
// not.
bool is_ligature(char32_t before, char32_t c) {
  const std::string pair = {static_cast<char>(before | 0x20), static_cast<char>(c | 0x20)};
  static const std::set<std::string> known = {"ss", "ff", "fi", "fl", "st"};
  return known.count(pair) > 0;
}

class Translation {
 public:
  explicit Translation(std::string_view pattern) : in_(to_characters(pattern)) {}

  std::string run() {
    alternatives(false);
    if (at_ < in_.size()) refuse(at_, 1);
    return std::move(out_);
  }

 private:
  [[noreturn]] void refuse(size_t from, size_t count) const {
    const std::u32string_view part = std::u32string_view(in_).substr(from, count);
    if (part.empty()) throw std::runtime_error(fmt::format("nothing after character {}", from));
    throw std::runtime_error(fmt::format("\"{}\" at character {}", to_utf8(part), from + 1));
  }
  bool has(size_t ahead = 0) const { return at_ + ahead < in_.size(); }
  bool is(char32_t c, size_t ahead = 0) const { return has(ahead) && in_[at_ + ahead] == c; }

  void alternatives(bool no_case) {
    for (;;) {
      char32_t before = 0;
      while (has() && !is('|') && !is(')')) {
        const bool letter = is_ascii_letter(in_[at_]);
        if (no_case && letter && before != 0 && is_ligature(before, in_[at_])) refuse(at_ - 1, 2);
        before = letter ? in_[at_] : 0;
        atom(no_case);
        repeat();
      }
      if (!is('|')) return;
      out_ += '|';
      ++at_;
    }
  }

  void atom(bool no_case) {
    const char32_t c = in_[at_];
    if (c == '(') return group(no_case);
    if (c == '[') return character_class(no_case);
    if (c == '\\') return escape(false, no_case);
    if (std::u32string_view(U".^$*+?{").find(c) != kNone) refuse(at_, 1);
    literal(c, no_case);
    ++at_;
  }

  // Other letters have case mappings of more than one character.
  void literal(char32_t c, bool no_case) {
    if (no_case && c >= 0x80) refuse(at_, 1);
    out_ += literal_of(c);
  }

  void group(bool no_case) {
    const size_t begin = at_++;
    if (++depth_ > kDeepest) refuse(begin, 1);
    std::string open = "(?:";
    if (is('?')) {
      ++at_;
      if (is('i') && is(':', 1)) {
        open = "(?i:", no_case = true, ++at_;
      } else if (is('!') || is('=')) {
        open = in_[at_] == '!' ? "(?!" : "(?=";
      } else if (!is(':')) {
        refuse(begin, 3);
      }
      ++at_;
    }
    out_ += open;
    alternatives(no_case);
    if (!is(')')) refuse(at_, 1);
    --depth_;
    ++at_;
    out_ += ')';
  }

  // * + ? with a ? (lazy) or + (possessive) after it, or a count.
  void repeat() {
    const size_t begin = at_;
    if (is('*') || is('+') || is('?')) {
      out_ += static_cast<char>(in_[at_++]);
      if (is('?') || is('+')) out_ += static_cast<char>(in_[at_++]);
    } else if (is('{')) {
      std::string counts;
      for (++at_; has() && !is('}'); ++at_) {
        if (!is_digit(in_[at_]) && !(in_[at_] == ',' && !counts.empty())) refuse(begin, 3);
        counts += static_cast<char>(in_[at_]);
      }
      const bool one_comma = counts.find(',') == counts.rfind(',');
      if (!is('}') || counts.empty() || counts.size() > 9 || !one_comma) refuse(begin, 3);
      ++at_;
      out_ += '{' + counts + '}';
    } else {
      return;
    }
    // The engines read a second repeat in different ways.
    if (is('*') || is('+') || is('?') || is('{')) refuse(begin, at_ + 1 - begin);
  }

  // The escape at `at_`, in a class or outside.
  void escape(bool in_class, bool no_case) {
    const size_t begin = at_++;
    if (!has()) refuse(begin, 1);
    const char32_t c = in_[at_++];
    if (c == 's') {
      out_ += in_class ? std::string(white_space) : fmt::format("[{}]", white_space);
    } else if (c == 'S') {
      out_ += in_class ? std::string(kOther) : fmt::format("[^{}]", white_space);
    } else if (c == 'd' || c == 'D') {
      out_ += c == 'd' ? "\\p{Nd}" : "\\P{Nd}";
    } else if (c == 'p' || c == 'P') {
      category(begin, c, no_case);
    } else if (const size_t control = kControls.find(c); control != kNone) {
      out_ += literal_of(U"\t\n\v\f\r"[control]);
    } else if (c >= 0x80 || is_ascii_letter(c) || is_digit(c)) {
      refuse(begin, 2);
    } else {
      out_ += literal_of(c);
    }
  }

  void category(size_t begin, char32_t p, bool no_case) {
    std::string name;
    if (!is('{')) refuse(begin, 2);
    for (++at_; has() && !is('}') && name.size() < 3; ++at_)
      name += in_[at_] < 0x80 ? static_cast<char>(in_[at_]) : '?';
    // A category of case means something else without case in one of the engines.
    if (!is('}') || !is_category(name) || no_case) refuse(begin, at_ + 1 - begin);
    ++at_;
    out_ += fmt::format("\\{}{{{}}}", static_cast<char>(p), name);
  }

  void character_class(bool no_case) {
    const size_t begin = at_++;
    out_ += '[';
    if (is('^')) {
      out_ += '^';
      ++at_;
    }
    if (is(']')) refuse(begin, at_ + 1 - begin);
    for (bool first = true; has() && !is(']'); first = false) class_item(first, no_case);
    if (!has()) refuse(begin, in_.size() - begin);
    ++at_;
    out_ += ']';
  }

  // An escape, a character, or a range of characters.
  void class_item(bool first, bool no_case) {
    // A class in a class, an intersection, POSIX's names: Oniguruma's syntax, not PCRE2's.
    if (is('[') || (is('&') && is('&', 1))) refuse(at_, 2);
    if (is('-') && !first && !is(']', 1)) refuse(at_, 2);
    const bool begins_range = class_character(no_case);
    if (!is('-') || is(']', 1)) return;
    if (!begins_range || !has(1) || is('[', 1) || no_case) refuse(at_, 2);
    out_ += '-';
    const size_t end = ++at_;
    if (!class_character(no_case)) refuse(end, at_ - end);
  }

  // False: it was a class of its own, as \s.
  bool class_character(bool no_case) {
    const bool escaped = is('\\') && has(1);
    const bool set = escaped && std::u32string_view(U"sSdDpP").find(in_[at_ + 1]) != kNone;
    if (is('\\')) {
      escape(true, no_case);
    } else {
      literal(in_[at_++], no_case);
    }
    return !set;
  }

  static constexpr size_t kNone = std::u32string_view::npos;
  static constexpr std::u32string_view kControls = U"tnvfr";
  std::u32string in_;
  size_t at_ = 0;
  int depth_ = 0;
  std::string out_;
};

}  // namespace

std::string pcre2_pattern(std::string_view pattern) {
  return Translation(pattern).run();
}

std::string pcre2_literal(std::string_view text) {
  std::string out;
  for (const char32_t c : to_characters(text)) out += literal_of(c);
  return out;
}

}  // namespace tally::train
