#include "engine/python/tokens.h"

#include <algorithm>
#include <initializer_list>
#include <set>
#include <string_view>

#include "engine/base/text.h"

namespace tally {
namespace {

bool is_quote(char c) {
  return c == '\'' || c == '"';
}

size_t end_of_name(std::string_view text, size_t from) {
  while (from < text.size() && is_word_char(text[from])) ++from;
  return from;
}

// Behind the text whose first quote is at `from`.
size_t end_of_text(std::string_view text, size_t from) {
  const std::string three(3, text[from]);
  const std::string_view end =
      text.substr(from, 3) == three ? std::string_view(three) : text.substr(from, 1);
  for (size_t at = from + end.size(); at < text.size(); at += text[at] == '\\' ? 2 : 1) {
    if (text.substr(at, end.size()) == end) return at + end.size();
  }
  return text.size();
}

// Whether the word makes another text of the one right behind it.
bool is_text_prefix(std::string_view word) {
  return word.size() <= 2 &&
         std::ranges::all_of(word, [](char c) { return is_one_of("rbufRBUF", c); });
}

bool is_formatted(std::string_view text) {
  return text.substr(0, text.find_first_of("'\"")).find_first_of("fF") != std::string_view::npos;
}

size_t end_of_number(std::string_view text, size_t from) {
  size_t end = from;
  while (end < text.size() && (is_word_char(text[end]) || text[end] == '.' ||
                               (is_one_of("+-", text[end]) && is_one_of("eE", text[end - 1]))))
    ++end;
  return end;
}

size_t end_of_dollar(std::string_view text, size_t from) {
  const bool braces = text.substr(from, 2) == "${";
  const size_t name = from + (braces ? 2 : 1);
  const size_t end = end_of_name(text, name);
  if (end == name || (braces && (end == text.size() || text[end] != '}'))) return from;
  return braces ? end + 1 : end;
}

size_t end_of_sign(std::string_view text, size_t from) {
  const char c = text[from];
  const char next = from + 1 < text.size() ? text[from + 1] : '\0';
  const bool two = is_one_of("=!<>*/", c) && (next == '=' || (is_one_of("*/<>", c) && next == c));
  return from + (two ? 2 : 1);
}

// Behind the expression in braces that begins at `from`: at its `}`, `:` or `!`.
size_t end_of_field(std::string_view text, size_t from) {
  int depth = 0;
  for (size_t at = from; at < text.size(); ++at) {
    const char c = text[at];
    if (is_quote(c)) {
      at = end_of_text(text, at) - 1;
      continue;
    }
    const bool unequal = text.substr(at, 2) == "!=";
    if (depth == 0 && is_one_of("}:!", c) && !unequal) return at;
    if (is_one_of("([{", c)) ++depth;
    if (is_one_of(")]}", c)) --depth;
    if (unequal) ++at;
  }
  return text.size();
}

// The tokens of f'...': its texts, which end with `{` and begin with what ends an expression, and
// those of the expressions between them.
void add_formatted(std::string_view text, std::vector<PythonToken>& tokens) {
  size_t begin = 0;  // of the text that is not added yet
  int specs = 0;     // within how many formats (`:.{digits}f`)
  for (size_t at = 0; at < text.size(); ++at) {
    const std::string_view two = text.substr(at, 2);
    if (text.substr(at, 3) == "\\N{") {
      at = std::min(text.find('}', at), text.size());  // a character by its name
    } else if (specs == 0 && (two == "{{" || two == "}}")) {
      ++at;
    } else if (text[at] == '}' && specs > 0) {
      --specs;
    } else if (text[at] == '{') {
      tokens.push_back({TokenKind::text, text.substr(begin, at + 1 - begin)});
      begin = end_of_field(text, at + 1);
      for (const PythonToken& token : tokens_of(text.substr(at + 1, begin - at - 1)))
        tokens.push_back(token);
      at = text.find_first_of(":}", begin);
      if (at == std::string_view::npos) break;
      if (text[at] == ':') ++specs;
    }
  }
  if (begin < text.size()) tokens.push_back({TokenKind::text, text.substr(begin)});
}

}  // namespace

bool is_word_char(char c) {
  return is_name_char(c) || static_cast<unsigned char>(c) >= 128;
}

std::vector<PythonToken> tokens_of(std::string_view expression) {
  std::vector<PythonToken> tokens;
  bool after_dot = false;
  for (size_t at = 0; at < expression.size();) {
    const char c = expression[at];
    const char next = at + 1 < expression.size() ? expression[at + 1] : '\0';
    size_t end = at + 1;
    TokenKind kind = TokenKind::sign;
    if (is_one_of(" \t\r\n", c)) {
      kind = TokenKind::space;
    } else if (c == '#') {  // a comment
      kind = TokenKind::space;
      end = std::min(expression.find('\n', at), expression.size());
    } else if (is_quote(c)) {
      kind = TokenKind::text;
      end = end_of_text(expression, at);
    } else if (is_digit(c) || (c == '.' && is_digit(next))) {
      kind = TokenKind::number;
      end = end_of_number(expression, at);
    } else if (is_word_char(c)) {
      kind = after_dot ? TokenKind::attribute : TokenKind::word;
      end = end_of_name(expression, at);
      if (end < expression.size() && is_quote(expression[end]) &&
          is_text_prefix(expression.substr(at, end - at))) {
        kind = TokenKind::text;
        end = end_of_text(expression, end);
      }
    } else if (c == '$' && end_of_dollar(expression, at) > at) {
      kind = TokenKind::dollar;
      end = end_of_dollar(expression, at);
    } else {
      end = end_of_sign(expression, at);
    }
    const std::string_view text = expression.substr(at, end - at);
    if (kind == TokenKind::text && is_formatted(text)) {
      add_formatted(text, tokens);
    } else {
      tokens.push_back({kind, text});
    }
    if (kind != TokenKind::space) after_dot = text == ".";
    at = end;
  }
  return tokens;
}

std::string_view dollar_name(std::string_view text) {
  if (text.empty() || text.front() != '$' || end_of_dollar(text, 0) != text.size()) return {};
  return text.substr(0, 2) == "${" ? text.substr(2, text.size() - 3) : text.substr(1);
}

std::string_view inside_quotes(std::string_view token, bool* plain) {
  *plain = token.size() >= 2 && is_quote(token.front()) && token.back() == token.front() &&
           token.find('\\') == std::string_view::npos &&
           token.substr(0, 3) != std::string(3, token.front());
  return *plain ? token.substr(1, token.size() - 2) : std::string_view();
}

namespace {

// Returns the next token after `at` that is not a space, or null.
const PythonToken* next_token(const std::vector<PythonToken>& tokens, size_t* at) {
  do {
    ++*at;
  } while (*at < tokens.size() && tokens[*at].kind == TokenKind::space);
  return *at < tokens.size() ? &tokens[*at] : nullptr;
}

}  // namespace

bool is_argument_name(const std::vector<PythonToken>& tokens, size_t at) {
  if (tokens[at].kind != TokenKind::word) return false;
  const PythonToken* equals = next_token(tokens, &at);
  if (equals == nullptr || equals->text != "=") return false;
  const PythonToken* value = next_token(tokens, &at);
  // f'{n=}' shows the name of n.
  return value == nullptr || value->kind != TokenKind::text || !is_one_of("}:!", value->text[0]);
}

bool makes_names(const std::vector<PythonToken>& tokens) {
  for (size_t i = 0; i < tokens.size(); ++i) {
    const std::string_view text = tokens[i].text;
    if (text == "lambda" || text == "for") return true;
    if (text == ":" && i + 1 < tokens.size() && tokens[i + 1].text == "=") return true;
  }
  return false;
}

namespace {

bool is_sign(const PythonToken& token, const char* signs) {
  return token.kind == TokenKind::sign && is_one_of(signs, token.text[0]);
}

// The first token from `at` on that is one of `words`, or that closes the bracket around it. Brackets
// that open behind `at` are passed by.
size_t end_of_part(const std::vector<PythonToken>& tokens, size_t at,
                   std::initializer_list<std::string_view> words) {
  for (int depth = 0; at < tokens.size(); ++at) {
    const bool closes = is_sign(tokens[at], ")]}");
    if (depth == 0 && (closes || std::ranges::find(words, tokens[at].text) != words.end())) break;
    if (closes) --depth;
    if (is_sign(tokens[at], "([{")) ++depth;
  }
  return at;
}

// The first token within the bracket around `at`.
size_t start_of_bracket(const std::vector<PythonToken>& tokens, size_t at) {
  for (int depth = 0; at > 0; --at) {
    const bool opens = is_sign(tokens[at - 1], "([{");
    if (opens && depth == 0) break;
    if (opens) --depth;
    if (is_sign(tokens[at - 1], ")]}")) ++depth;
  }
  return at;
}

// Names that an expression gives itself, and the tokens in which they mean what it gives.
struct OwnNames {
  std::set<std::string_view> names;
  std::set<size_t> given;  // the tokens that are parameters of a lambda
  size_t begin = 0;
  size_t end = 0;
  // The values of a comprehension's first `for` are read outside of it.
  size_t outer_begin = 0;
  size_t outer_end = 0;

  bool mean(std::string_view name, size_t at) const {
    const bool outer = at >= outer_begin && at < outer_end;
    return given.count(at) != 0 || (at >= begin && at < end && !outer && names.count(name) != 0);
  }
};

OwnNames names_of_for(const std::vector<PythonToken>& tokens, size_t at) {
  OwnNames own;
  own.begin = start_of_bracket(tokens, at);
  own.end = end_of_part(tokens, at, {});
  const size_t in = end_of_part(tokens, at, {"in"});
  for (; at < in; ++at)
    if (tokens[at].kind == TokenKind::word) own.names.insert(tokens[at].text);
  const size_t first = end_of_part(tokens, own.begin, {"for"});
  own.outer_begin = end_of_part(tokens, first, {"in"});
  own.outer_end = end_of_part(tokens, own.outer_begin, {"for", "if"});
  return own;
}

OwnNames names_of_lambda(const std::vector<PythonToken>& tokens, size_t at) {
  OwnNames own;
  own.begin = end_of_part(tokens, at, {":"});
  own.end = end_of_part(tokens, own.begin, {",", "for"});
  for (++at; at < own.begin; ++at) {
    const size_t end = end_of_part(tokens, at, {",", ":"});
    while (at < end && tokens[at].kind != TokenKind::word) ++at;
    if (at < end) own.names.insert(tokens[at].text);
    own.given.insert(at);
    at = end;
  }
  return own;
}

std::vector<OwnNames> own_names(const std::vector<PythonToken>& tokens) {
  std::vector<OwnNames> all;
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i].kind != TokenKind::word) continue;
    if (tokens[i].text == "for") all.push_back(names_of_for(tokens, i));
    if (tokens[i].text == "lambda") all.push_back(names_of_lambda(tokens, i));
    size_t next = i;
    const PythonToken* colon = next_token(tokens, &next);
    if (colon != nullptr && colon->text == ":" && next + 1 < tokens.size() &&
        tokens[next + 1].text == "=")
      all.push_back({{tokens[i].text}, {}, 0, tokens.size()});
  }
  return all;
}

// Whether the word is a function of Python's that is called.
bool calls_function(const std::vector<PythonToken>& tokens, size_t at) {
  if (!is_python_function(std::string(tokens[at].text))) return false;
  const PythonToken* next = next_token(tokens, &at);
  return next != nullptr && next->text == "(";
}

}  // namespace

std::vector<std::string> names_read(std::string_view expression) {
  std::vector<std::string> names;
  const std::vector<PythonToken> tokens = tokens_of(expression);
  const std::vector<OwnNames> own = own_names(tokens);
  const auto reads = [&](size_t at) {
    const std::string_view text = tokens[at].text;
    return tokens[at].kind == TokenKind::word && !is_argument_name(tokens, at) &&
           !is_python_keyword(std::string(text)) && !calls_function(tokens, at) &&
           std::ranges::none_of(own, [&](const OwnNames& one) { return one.mean(text, at); });
  };
  for (size_t i = 0; i < tokens.size(); ++i) {
    const PythonToken& token = tokens[i];
    if (reads(i)) names.emplace_back(token.text);
    if (token.kind != TokenKind::dollar && token.kind != TokenKind::text) continue;
    for (size_t at = token.text.find('$'); at != std::string_view::npos;
         at = token.text.find('$', at + 1)) {
      const size_t end = end_of_dollar(token.text, at);
      if (end > at) names.emplace_back(dollar_name(token.text.substr(at, end - at)));
    }
  }
  return names;
}

bool is_python_keyword(const std::string& word) {
  static const std::set<std::string> words = {"and",  "or",     "not", "in",   "is",    "if",
                                              "else", "lambda", "for", "True", "False", "None"};
  return words.count(word) != 0;
}

bool is_python_function(const std::string& word) {
  static const std::set<std::string> words = {
      "abs",    "all",     "any",     "ascii",      "bin",     "bool",    "bytes",     "callable",
      "chr",    "compile", "complex", "dict",       "dir",     "divmod",  "enumerate", "eval",
      "filter", "float",   "format",  "frozenset",  "getattr", "hasattr", "hash",      "hex",
      "id",     "input",   "int",     "isinstance", "iter",    "len",     "list",      "map",
      "max",    "min",     "next",    "object",     "oct",     "open",    "ord",       "pow",
      "print",  "range",   "repr",    "reversed",   "round",   "set",     "slice",     "sorted",
      "str",    "sum",     "tuple",   "type",       "vars",    "zip"};
  return words.count(word) != 0;
}

bool is_python_word(const std::string& word) {
  return is_python_keyword(word) || is_python_function(word);
}

bool is_python_name(const std::string& word) {
  static const std::set<std::string> words = {
      // rare builtins
      "aiter", "anext", "await", "async", "breakpoint", "bytearray", "classmethod", "copyright",
      "credits", "delattr", "Ellipsis", "exec", "exit", "globals", "help", "issubclass", "license",
      "locals", "memoryview", "NotImplemented", "property", "quit", "setattr", "staticmethod",
      "super", "yield",
      // modules of python_helper.h, and what it takes from them
      "os", "sys", "datetime", "glob", "grp", "itertools", "json", "math", "operator", "platform",
      "pwd", "random", "re", "shutil", "socket", "string", "subprocess", "textwrap", "time",
      "deque", "Queue"};
  const std::string_view name = word;
  return is_python_word(word) || words.count(word) != 0 || name.starts_with("__") ||
         name.ends_with("Error") || name.ends_with("Exception") || name.ends_with("Warning");
}

}  // namespace tally
