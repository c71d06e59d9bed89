// A recursive-descent parser for tag expressions. JUBE rewrites the text to a Python expression (|
// is or, + is and, ! is not, ^ is exclusive or). The unusual precedence comes from this: Python's ^
// binds tighter than its not.
#include "engine/tags/tags.h"

#include <algorithm>

#include "engine/base/text.h"

namespace tally {

namespace {

constexpr int kDeepest = 200;  // limit for nested parentheses and nots

std::string without_spaces(std::string_view text) {
  std::string dense;
  for (char c : text) {
    if (c != ' ' && c != '\t' && c != '\n' && c != '\r') dense += c;
  }
  return dense;
}

constexpr std::string_view kOperators = "()|+!^,";

// A name has any other characters, as in JUBE: must:verbose, 50%, a/b.
bool is_atom_char(char c) {
  return kOperators.find(c) == std::string_view::npos;
}

class TagParser {
 public:
  TagParser(std::string_view text, const std::set<std::string>& tags) : text_(text), tags_(tags) {}

  bool parse(bool* value) { return list(value) && at_ == text_.size(); }

 private:
  bool take(char c) {
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  // Parses the old spelling, a comma-separated list. It is true if no name with ! is set and, if
  // there are names without !, at least one of them is set.
  bool list(bool* value) {
    bool any_wanted = false, found = false, forbidden = false, is_list = false;
    for (;;) {
      size_t start = at_;
      bool empty = at_ == text_.size() || text_[at_] == ',' || text_[at_] == ')';
      bool piece = false;
      if (empty) {
        if (!is_list && (at_ == text_.size() || text_[at_] != ',')) return false;
      } else if (!any(&piece)) {
        return false;
      } else if (is_negated_name(text_.substr(start, at_ - start))) {
        forbidden = forbidden || !piece;
      } else {
        any_wanted = true;
        found = found || piece;
      }
      if (!take(',')) break;
      is_list = true;
    }
    *value = !forbidden && (found || !any_wanted);
    return true;
  }

  static bool is_negated_name(std::string_view piece) {
    return piece.size() > 1 && piece[0] == '!' &&
           std::all_of(piece.begin() + 1, piece.end(), is_atom_char);
  }

  // Both sides are always parsed, so that a syntax error after a true value is still an error.
  bool any(bool* value) {
    if (!all(value)) return false;
    while (take('|')) {
      bool right = false;
      if (!all(&right)) return false;
      *value = *value || right;
    }
    return true;
  }

  bool all(bool* value) {
    if (!negation(value)) return false;
    while (take('+')) {
      bool right = false;
      if (!negation(&right)) return false;
      *value = *value && right;
    }
    return true;
  }

  bool negation(bool* value) {
    bool inverted = false;
    while (take('!')) inverted = !inverted;
    if (!exclusive(value)) return false;
    *value = *value != inverted;
    return true;
  }

  bool exclusive(bool* value) {
    if (!primary(value)) return false;
    while (take('^')) {
      bool right = false;
      if (!primary(&right)) return false;
      *value = *value != right;
    }
    return true;
  }

  bool primary(bool* value) {
    if (take('(')) {
      if (++depth_ > kDeepest) return false;
      bool good = list(value) && take(')');
      --depth_;
      return good;
    }
    size_t start = at_;
    while (at_ < text_.size() && is_atom_char(text_[at_])) ++at_;
    if (at_ == start) return false;
    *value = tags_.count(std::string(text_.substr(start, at_ - start))) > 0;
    return true;
  }

  std::string_view text_;
  const std::set<std::string>& tags_;
  size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

Status evaluate_tags(std::string_view expression, const std::set<std::string>& tags, bool* value) {
  std::string text = without_spaces(expression);
  bool result = false;
  if (!TagParser(text, tags).parse(&result))
    return Status::error("Tag string '" + std::string(expression) + "' not parseable.");
  *value = result;
  return Status::ok();
}

std::vector<std::string> tag_names(std::string_view expression) {
  std::string text = without_spaces(expression);
  std::vector<std::string> names;
  size_t at = 0;
  while (at < text.size()) {
    size_t end = text.find_first_of(kOperators, at);
    if (end == std::string::npos) end = text.size();
    std::string name = text.substr(at, end - at);
    if (!name.empty() && !contains(names, name)) {
      names.push_back(name);
    }
    at = end + 1;
  }
  return names;
}

}  // namespace tally
