#include "engine/read/yaml_faults.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "engine/base/text.h"

namespace tally {
namespace {

constexpr size_t kNowhere = std::string_view::npos;

size_t line_begin(std::string_view text, size_t at) {
  const size_t end = at == 0 ? kNowhere : text.rfind('\n', at - 1);
  return end == kNowhere ? 0 : end + 1;
}
size_t line_end(std::string_view text, size_t at) {
  return std::min(text.find('\n', at), text.size());
}
size_t line_number(std::string_view text, size_t at) {
  return 1 +
         static_cast<size_t>(std::count(text.begin(), text.begin() + static_cast<long>(at), '\n'));
}
std::string_view line_at(std::string_view text, size_t at) {
  const size_t begin = line_begin(text, at);
  return text.substr(begin, line_end(text, at) - begin);
}
size_t indent_of(std::string_view line) {
  return std::min(line.find_first_not_of(' '), line.size());
}
bool is_blank(char c) {
  return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

// Reads a file as far as it takes to see where texts, lists and mappings begin and end, and stops
// at the first one that ends where it should not.
class FaultFinder {
 public:
  explicit FaultFinder(std::string_view text) : text_(text) {}

  std::optional<YamlFault> find() {
    while (at_ < text_.size() && !fault_) step();
    if (!fault_ && in_flow()) {
      const char open = text_[levels_.back().at];
      fail(levels_.back().at, fmt::format("this '{}' is not closed", open),
           fmt::format("close it with '{}'", closing(open)));
    }
    return fault_;
  }

 private:
  struct Level {
    size_t at = 0;          // its bracket
    bool in_value = false;  // behind the ':' of an entry
    bool done = false;      // behind a text in quotes, a list or a mapping
  };

  static char closing(char open) { return open == '[' ? ']' : '}'; }

  char here(size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\n';
  }
  bool in_flow() const { return !levels_.empty(); }
  static bool is_flow_sign(char c) {
    return c == ',' || c == '[' || c == ']' || c == '{' || c == '}';
  }
  // Whether a ':' here ends a key.
  bool ends_key(size_t at) const {
    if (text_[at] != ':') return false;
    const char next = at + 1 < text_.size() ? text_[at + 1] : '\n';
    return is_blank(next) || (in_flow() && is_flow_sign(next));
  }
  void fail(size_t at, std::string message, std::string hint) {
    fault_ = YamlFault{at, std::move(message), std::move(hint)};
  }

  void step() {
    const char c = here();
    if (is_blank(c)) {
      ++at_;
    } else if (c == '#' && (at_ == 0 || is_blank(text_[at_ - 1]))) {
      at_ = line_end(text_, at_);
    } else if (in_flow() && (c == ']' || c == '}')) {
      close();
    } else if (in_flow() && c == ',') {
      levels_.back() = {levels_.back().at};
      ++at_;
    } else if (ends_key(at_)) {
      if (in_flow()) levels_.back() = {levels_.back().at, true};
      ++at_;
    } else if (in_flow() && levels_.back().done) {
      not_closed_before(at_);
    } else if (c == '\'' || c == '"') {
      quoted();
    } else if (c == '[' || c == '{') {
      levels_.push_back({at_++});
    } else if (!in_flow() && (c == '-' || c == '?') && is_blank(here(1))) {
      ++at_;
    } else if (c == '&' || c == '*' || c == '!') {
      while (!is_blank(here()) && !(in_flow() && is_flow_sign(here()))) ++at_;
    } else if (!in_flow() && (c == '|' || c == '>')) {
      block_text();
    } else {
      plain();
    }
  }

  // The lines of a text behind `|` or `>`.
  void block_text() {
    const size_t indent = indent_of(line_at(text_, at_));
    at_ = line_end(text_, at_);
    while (at_ < text_.size()) {
      const std::string_view line = line_at(text_, at_ + 1);
      if (!strip(line).empty() && indent_of(line) <= indent) return;
      at_ = line_end(text_, at_ + 1);
    }
  }

  size_t quote_end(size_t begin) const {
    const char quote = text_[begin];
    for (size_t at = begin + 1; at < text_.size(); ++at) {
      if (quote == '"' && text_[at] == '\\') {
        ++at;
      } else if (text_[at] == quote) {
        if (quote == '"' || at + 1 >= text_.size() || text_[at + 1] != quote) return at;
        ++at;
      }
    }
    return kNowhere;
  }

  // Whether something stands at `at` in its line that may not follow a quote or a bracket.
  bool goes_on(size_t at) const {
    while (at < text_.size() && (text_[at] == ' ' || text_[at] == '\t')) ++at;
    if (at >= text_.size() || is_blank(text_[at]) || text_[at] == ':') return false;
    if (text_[at] == '#' && is_blank(text_[at - 1])) return false;
    return !(in_flow() && (text_[at] == ',' || text_[at] == ']' || text_[at] == '}'));
  }

  void quoted() {
    const size_t begin = at_;
    const size_t end = quote_end(begin);
    const std::string quote(1, text_[begin]);
    if (end == kNowhere) {
      fail(begin, "this quote is not closed", "close it at the end of its text: " + quote);
      return;
    }
    at_ = end + 1;
    if (in_flow()) levels_.back().done = true;
    if (!goes_on(at_)) return;
    if (line_number(text_, begin) != line_number(text_, end)) {
      fail(begin, "this quote is not closed in its line",
           fmt::format("the next {} is in line {}, which begins another text", quote,
                       line_number(text_, end)));
    } else {
      fail(begin, "the text goes on behind its closing quote",
           quote == "'" ? "a ' within '...' is written twice: ''; or quote all of the text"
                        : "a \" within \"...\" is written \\\"; or quote all of the text in '...'");
    }
  }

  void close() {
    const Level level = levels_.back();
    const char open = text_[level.at];
    if ((open == '[') != (here() == ']')) {
      fail(level.at, fmt::format("this '{}' is not closed", open),
           fmt::format("a '{}' comes first; a text with brackets in it must be quoted", here()));
      return;
    }
    levels_.pop_back();
    if (in_flow()) levels_.back().done = true;
    ++at_;
    if (goes_on(at_)) {
      fail(level.at, fmt::format("a text that begins with '{}' must be quoted", open),
           quoted_hint(level.at));
    }
  }

  // A text without quotes.
  void plain() {
    const size_t begin = at_;
    if (!in_flow()) {
      while (here() != '\n' && !ends_key(at_) && !(here() == '#' && is_blank(text_[at_ - 1])))
        ++at_;
      return;
    }
    for (; at_ < text_.size(); ++at_) {
      const char c = here();
      if (c == '#' && is_blank(text_[at_ - 1])) {
        at_ = line_end(text_, at_) - 1;
        continue;
      }
      if (ends_key(at_)) {
        second_colon(begin);
        return;
      }
      if (c == '[' || c == '{') {
        fail(begin, fmt::format("a text with '{}' in it must be quoted", c), quoted_hint(begin));
        return;
      }
      if (is_flow_sign(c)) return;
    }
  }

  // A ':' behind the text that began at `begin`. A key has one line.
  void second_colon(size_t begin) {
    const size_t last = text_.find_last_not_of(" \n\r\t", at_ - 1);
    if (line_number(text_, begin) != line_number(text_, last)) {
      not_closed_before(last);
    } else if (levels_.back().in_value) {
      fail(begin, "a text with ': ' in it must be quoted", quoted_hint(begin));
    }
  }

  void not_closed_before(size_t at) {
    const size_t open = levels_.back().at;
    fail(open,
         fmt::format("this '{}' is not closed before line {}", text_[open], line_number(text_, at)),
         fmt::format("close it with '{}', or put a ',' between its entries", closing(text_[open])));
  }

  // The text as it may be meant, in quotes: up to the end of the entry.
  std::string quoted_hint(size_t begin) const {
    constexpr size_t kLongest = 60;
    size_t end = line_end(text_, begin);
    const std::string_view line = text_.substr(begin, end - begin);
    int depth = 0;
    for (size_t i = 0; i < line.size() && in_flow(); ++i) {
      if (line[i] == '[' || line[i] == '(' || line[i] == '{') ++depth;
      const bool closes = line[i] == ']' || line[i] == ')' || line[i] == '}';
      if (closes && depth == 0) end = std::min(end, begin + i);
      if (closes && depth > 0) --depth;
      if (line[i] == ',' && depth == 0) end = std::min(end, begin + i);
    }
    std::string meant(strip(text_.substr(begin, end - begin)));
    if (meant.size() > kLongest) return "put it in quotes: '...'";
    replace_all(meant, "'", "''");
    return fmt::format("put it in quotes: '{}'", meant);
  }

  std::string_view text_;
  size_t at_ = 0;
  std::vector<Level> levels_;  // of lists and mappings in brackets that are open
  std::optional<YamlFault> fault_;
};

// The line before the one at `at` that is neither empty nor a comment.
std::optional<size_t> line_before(std::string_view text, size_t at) {
  size_t begin = line_begin(text, at);
  while (begin > 0) {
    begin = line_begin(text, begin - 1);
    const std::string_view line = strip(line_at(text, begin));
    if (!line.empty() && line.front() != '#') return begin;
  }
  return std::nullopt;
}

// `key:value`, and nothing that makes it a key.
bool lacks_blank(std::string_view line) {
  size_t at = indent_of(line);
  const size_t begin = at;
  while (at < line.size() && (is_name_char(line[at]) || line[at] == '-')) ++at;
  return at > begin && at + 1 < line.size() && line[at] == ':' && !is_blank(line[at + 1]) &&
         line.find(": ") == kNowhere && line.back() != ':';
}

// Lines that begin in a column of no neighbour.
std::optional<YamlFault> indentation_fault(std::string_view text, size_t found,
                                           const std::string& message) {
  const bool deeper_or_not = message.find("end of map not found") != kNowhere ||
                             message.find("end of sequence not found") != kNowhere;
  if (!deeper_or_not && message.find("illegal map value") == kNowhere) return std::nullopt;
  size_t begin = line_begin(text, found);
  const std::string_view line = line_at(text, begin);
  const size_t indent = indent_of(line);
  if (indent < line.size() && line[indent] == '\t') return std::nullopt;
  const std::optional<size_t> before = line_before(text, begin);
  if (!before) return std::nullopt;
  const std::string_view above = line_at(text, *before);
  if (lacks_blank(above)) {
    const size_t colon = above.find(':');
    return YamlFault{*before + colon, "a blank is missing behind this ':'",
                     fmt::format("write '{}: {}'", strip(above.substr(0, colon)),
                                 strip(above.substr(colon + 1)))};
  }
  const size_t own = indent_of(above);
  if (indent > own && above.find(": ") != kNowhere && line.find(':') != kNowhere) {
    return YamlFault{begin + indent,
                     "the line is indented deeper than the one above, which has its value already",
                     fmt::format("begin it in column {}, as the line above", own + 1)};
  }
  if (!deeper_or_not || indent >= own) return std::nullopt;
  return YamlFault{begin + indent, "the line is indented neither like its neighbours nor deeper",
                   fmt::format("begin it in column {}, as the line above", own + 1)};
}

}  // namespace

std::optional<YamlFault> yaml_fault(std::string_view text, size_t found,
                                    const std::string& message) {
  if (message.find("unknown escape") != kNowhere || message.find("illegal tab") != kNowhere)
    return std::nullopt;
  if (std::optional<YamlFault> fault = FaultFinder(text).find(); fault && fault->at <= found)
    return fault;
  return indentation_fault(text, std::min(found, text.size()), message);
}

std::string yaml_hint(const std::string& message, std::string_view line) {
  const size_t indent = line.find_first_not_of(' ');
  if (indent != std::string::npos && line[indent] == '\t') {
    return "YAML is indented with blanks; this line begins with a tab";
  }
  const std::pair<const char*, const char*> hints[] = {
      {"illegal map value",
       "a text with ': ' in it must be quoted; or a key in the line above lacks its ':'"},
      {"end of sequence flow", "a '[' is not closed, or a text that starts with '[' is not quoted"},
      {"end of map flow", "a '{' is not closed, or a text that starts with '{' is not quoted"},
      {"end of map not found", "the line is indented neither like its neighbours nor deeper"},
      {"end of sequence not found", "the line is indented neither like its neighbours nor deeper"},
      {"illegal tab", "indent with blanks"},
      {"unknown token", "a text that starts with @, `, % or a tab must be quoted"},
      {"unknown escape character",
       "within \"...\" a backslash begins an escape: put the text in single quotes, '...'"},
      {"illegal EOF in scalar", "a quote is not closed"},
      {"the referenced anchor is not defined", "a text that starts with '*' must be quoted"},
  };
  for (const auto& [part, hint] : hints) {
    if (message.find(part) != std::string::npos) return hint;
  }
  return {};
}

}  // namespace tally
