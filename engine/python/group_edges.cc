#include "engine/python/group_edges.h"

#include <algorithm>
#include <cstddef>

namespace tally {
namespace {

struct Token {
  enum class Kind { literal, named, open, begin, end, choice };
  Kind kind = Kind::literal;
  bool optional = false;  // it need not be there
  bool negative = false;  // begin: of (?!...) or (?<!...)
  size_t group = 0;       // begin, end: of a capturing group, from 1
};

// Divides a pattern into what stands for one character each, and groups.
class Reader {
 public:
  explicit Reader(std::string_view pattern) : in_(pattern) {}

  std::vector<Token> read() {
    while (at_ < in_.size()) next();
    return std::move(tokens_);
  }
  size_t groups() const { return groups_; }

 private:
  char peek(size_t ahead = 0) const { return at_ + ahead < in_.size() ? in_[at_ + ahead] : '\0'; }
  void add(Token::Kind kind, size_t length) {
    tokens_.push_back({kind, false, false, 0});
    at_ += length;
  }

  void next() {
    const char c = peek();
    if (c == '\\') return escape();
    if (c == '[') return set();
    if (c == '(') return begin();
    if (c == ')') return end();
    if (c == '|') return add(Token::Kind::choice, 1);
    if (c == '*' || c == '+' || c == '?' || (c == '{' && is_count())) return quantifier();
    if (c == '.') return add(Token::Kind::open, 1);
    add(c == '^' || c == '$' ? Token::Kind::named : Token::Kind::literal, 1);
  }

  void escape() {
    constexpr std::string_view open = "SwWDdbB";
    constexpr std::string_view named = "sAZ";
    const char c = peek(1);
    const auto is_in = [c](std::string_view list) {
      return list.find(c) != std::string_view::npos;
    };
    add(is_in(open)    ? Token::Kind::open
        : is_in(named) ? Token::Kind::named
                       : Token::Kind::literal,
        2);
  }

  void set() {
    const bool all_but = peek(1) == '^';
    size_t end = at_ + (all_but ? 2 : 1);
    if (end < in_.size() && in_[end] == ']') ++end;
    while (end < in_.size() && in_[end] != ']') end += in_[end] == '\\' ? 2 : 1;
    add(all_but ? Token::Kind::open : Token::Kind::named, std::min(end + 1, in_.size()) - at_);
  }

  void begin() {
    Token token{Token::Kind::begin, false, false, 0};
    const bool special = peek(1) == '?';
    const bool named = special && peek(2) == 'P' && peek(3) == '<';
    if (!special || named) token.group = ++groups_;
    token.negative = special && (peek(2) == '!' || (peek(2) == '<' && peek(3) == '!'));
    at_ += 1;
    if (named) at_ = std::min(in_.find('>', at_), in_.size() - 1) + 1;
    if (special && !named) {
      const size_t stop = in_.find_first_of(":=!)>", at_);
      at_ = std::min(stop, in_.size() - 1) +
            (stop != std::string_view::npos && in_[stop] == ')' ? 0 : 1);
    }
    begun_.push_back(tokens_.size());
    tokens_.push_back(token);
  }

  void end() {
    Token token{Token::Kind::end, false, false, 0};
    if (!begun_.empty()) {
      token.group = tokens_[begun_.back()].group;
      last_begin_ = begun_.back();
      begun_.pop_back();
    }
    tokens_.push_back(token);
    ++at_;
  }

  // {2}, {2,}, {,3}, {2,3}; any other brace is a character.
  bool is_count() const {
    const size_t end = in_.find('}', at_);
    if (end == std::string_view::npos || end == at_ + 1) return false;
    const std::string_view inside = in_.substr(at_ + 1, end - at_ - 1);
    return inside.find_first_not_of("0123456789,") == std::string_view::npos;
  }

  void quantifier() {
    const char c = peek();
    const bool optional = c == '*' || c == '?' || (c == '{' && (peek(1) == '0' || peek(1) == ','));
    at_ = c == '{' ? in_.find('}', at_) + 1 : at_ + 1;
    if (peek() == '?') ++at_;
    if (tokens_.empty() || !optional) return;
    tokens_.back().optional = true;
    if (tokens_.back().kind == Token::Kind::end) tokens_[last_begin_].optional = true;
  }

  std::string_view in_;
  size_t at_ = 0, groups_ = 0, last_begin_ = 0;
  std::vector<size_t> begun_;  // tokens of groups that have not ended
  std::vector<Token> tokens_;
};

// Whether the tokens from `at` on, in the direction of `step`, name what must stand there.
bool is_open(const std::vector<Token>& tokens, size_t at, int step) {
  for (; at < tokens.size(); at += static_cast<size_t>(step)) {  // below 0 is beyond the end
    const Token& token = tokens[at];
    switch (token.kind) {
      case Token::Kind::literal:
      case Token::Kind::named:
        return token.optional;
      case Token::Kind::open:
      case Token::Kind::choice:
        return true;
      case Token::Kind::begin:
      case Token::Kind::end:
        if (token.optional || token.negative) return true;
    }
  }
  return true;
}

}  // namespace

std::vector<GroupEdges> group_edges(std::string_view pattern) {
  Reader reader(pattern);
  const std::vector<Token> tokens = reader.read();
  std::vector<GroupEdges> edges(reader.groups() + 1);
  std::vector<size_t> begin(edges.size());
  const auto is_text = [&](size_t from, size_t to) {
    return std::all_of(tokens.begin() + static_cast<std::ptrdiff_t>(from),
                       tokens.begin() + static_cast<std::ptrdiff_t>(to), [](const Token& token) {
                         return token.kind == Token::Kind::literal ||
                                token.kind == Token::Kind::choice;
                       });
  };
  edges.front().literal = is_text(0, tokens.size());
  for (size_t i = 0; i < tokens.size(); ++i) {
    const size_t group = tokens[i].group;
    if (group == 0) continue;
    if (tokens[i].kind == Token::Kind::begin) {
      begin[group] = i;
    } else {
      edges[group] = {is_open(tokens, begin[group] - 1, -1), is_open(tokens, i + 1, 1),
                      is_text(begin[group] + 1, i)};
    }
  }
  return edges;
}

}  // namespace tally
