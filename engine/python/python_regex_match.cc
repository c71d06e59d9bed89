#define PCRE2_CODE_UNIT_WIDTH 8
#include <fmt/format.h>
#include <pcre2.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "engine/python/python_regex.h"

namespace tally {

// Compiling and running patterns with PCRE2 (see python_regex.h for the dialect).

namespace {

constexpr size_t kStackStart = size_t{64} << 10;
constexpr size_t kStackMost = size_t{512} << 20;  // reserved; used only by patterns like (.|\n)*?
constexpr uint32_t kMatchLimit = 2'000'000'000;

std::string message_of(int code) {
  std::array<PCRE2_UCHAR, 256> buffer{};
  pcre2_get_error_message(code, buffer.data(), buffer.size());
  return reinterpret_cast<const char*>(buffer.data());
}

}  // namespace

struct Regex::Impl {
  struct FreeCode {
    void operator()(pcre2_code* code) const { pcre2_code_free(code); }
  };
  struct FreeData {
    void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
  };
  struct FreeMatchContext {
    void operator()(pcre2_match_context* context) const { pcre2_match_context_free(context); }
  };
  struct FreeStack {
    void operator()(pcre2_jit_stack* stack) const { pcre2_jit_stack_free(stack); }
  };

  // A pattern compiled for one kind of text: Unicode, or pure ASCII. For ASCII the character classes
  // are tables and nothing needs to be decoded.
  struct Program {
    std::unique_ptr<pcre2_code, FreeCode> code;
    std::unique_ptr<pcre2_match_data, FreeData> data;
    bool jit = false;
  };

  TranslatedRegex translated;
  std::vector<GroupEdges> edges;
  bool dot_all = false;
  Program unicode, ascii;
  std::unique_ptr<pcre2_match_context, FreeMatchContext> context;
  std::unique_ptr<pcre2_jit_stack, FreeStack> stack;

  Status build(Program& program, bool utf) const {
    uint32_t options = PCRE2_MULTILINE | PCRE2_ALT_CIRCUMFLEX | PCRE2_NEVER_BACKSLASH_C;
    if (utf) options |= PCRE2_UTF | PCRE2_MATCH_INVALID_UTF;
    if (utf && !translated.ascii_classes) options |= PCRE2_UCP;
    if (dot_all || translated.dot_all) options |= PCRE2_DOTALL;
    if (translated.ignore_case) options |= PCRE2_CASELESS;
    if (translated.verbose) options |= PCRE2_EXTENDED;
    int code = 0;
    PCRE2_SIZE offset = 0;
    pcre2_compile_context* settings = pcre2_compile_context_create(nullptr);
    pcre2_set_newline(settings, PCRE2_NEWLINE_LF);
    program.code.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated.pcre.data()),
                                     translated.pcre.size(), options, &code, &offset, settings));
    pcre2_compile_context_free(settings);
    if (!program.code)
      return Status::error(fmt::format("{} at position {}", message_of(code), offset));
    program.jit = pcre2_jit_compile(program.code.get(), PCRE2_JIT_COMPLETE) == 0;
    program.data.reset(pcre2_match_data_create_from_pattern(program.code.get(), nullptr));
    return Status::ok();
  }

  int match(Program& program, std::string_view text, size_t start, uint32_t options) {
    auto subject = reinterpret_cast<PCRE2_SPTR>(text.data());
    if (program.jit) {
      int found = pcre2_jit_match(program.code.get(), subject, text.size(), start, options,
                                  program.data.get(), context.get());
      if (found != PCRE2_ERROR_JIT_STACKLIMIT && found != PCRE2_ERROR_JIT_BADOPTION) return found;
    }
    return pcre2_match(program.code.get(), subject, text.size(), start, options | PCRE2_NO_JIT,
                       program.data.get(), context.get());
  }
};

Regex::Regex(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Regex::~Regex() = default;

Status Regex::compile(std::string_view pattern, bool dot_all, std::unique_ptr<Regex>* out) {
  auto impl = std::make_unique<Impl>();
  impl->translated = translate_python_regex(pattern);
  impl->dot_all = dot_all;
  if (!impl->translated.error.empty()) {
    return Status::error(
        fmt::format("{} at position {}", impl->translated.error, impl->translated.error_at));
  }
  TRY(impl->build(impl->unicode, true));
  impl->edges = group_edges(pattern);
  impl->context.reset(pcre2_match_context_create(nullptr));
  impl->stack.reset(pcre2_jit_stack_create(kStackStart, kStackMost, nullptr));
  pcre2_jit_stack_assign(impl->context.get(), nullptr, impl->stack.get());
  pcre2_set_match_limit(impl->context.get(), kMatchLimit);
  // A search that does not fit there is made without it, within as much memory.
  pcre2_set_heap_limit(impl->context.get(), static_cast<uint32_t>(kStackMost >> 10));
  out->reset(new Regex(std::move(impl)));
  return Status::ok();
}

const std::vector<GroupEdges>& Regex::edges() const {
  return impl_->edges;
}

int Regex::groups() const {
  uint32_t count = 0;
  pcre2_pattern_info(impl_->unicode.code.get(), PCRE2_INFO_CAPTURECOUNT, &count);
  return static_cast<int>(count);
}

Status Regex::find_all(std::string_view text, bool ascii,
                       const std::function<void(std::string_view, int)>& sink) {
  Impl::Program* program = &impl_->unicode;
  if (ascii && !impl_->translated.non_ascii) {
    if (!impl_->ascii.code) TRY(impl_->build(impl_->ascii, false));
    program = &impl_->ascii;
  }
  if (text.data() == nullptr) text = "";
  const int group_count = groups();
  const PCRE2_SIZE* bounds = pcre2_get_ovector_pointer(program->data.get());
  size_t start = 0;
  uint32_t options = 0;
  while (start <= text.size()) {
    int found = impl_->match(*program, text, start, options);
    if (found == PCRE2_ERROR_NOMATCH) return Status::ok();
    if (found < 0) return Status::error(message_of(found));
    int first = group_count == 0 ? 0 : 1;
    for (int group = first; group <= group_count; ++group) {
      PCRE2_SIZE from = bounds[2 * group];
      PCRE2_SIZE to = bounds[2 * group + 1];
      const bool empty = group >= found || from == PCRE2_UNSET || from >= to;
      if (empty && bounds[0] >= bounds[1]) continue;
      sink(empty ? text.substr(bounds[0], 0) : text.substr(from, to - from), group);
    }
    // After an empty match, Python tries the same position again for a match that is not empty.
    options = bounds[0] == bounds[1] ? PCRE2_NOTEMPTY_ATSTART : 0;
    start = std::max(bounds[1], start);  // must not move backwards; \K in a lookbehind is rejected
  }
  return Status::ok();
}

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
