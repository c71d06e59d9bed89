// Divides a Python expression, in which $names may stand, into tokens. This is the one place that
// knows where texts in quotes begin and end.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tally {

enum class TokenKind : uint8_t {
  space,
  word,       // a name or a keyword
  attribute,  // the word behind a dot: `real` in x.real
  number,     // 1, .5, 1e-3; a sign before it is a token of its own
  text,       // with its quotes and prefix: 'a', r"b", """c"""; it may lack its end. f'a{n:2}b' is
              // f'a{ and :2}b', and n is a word between them
  dollar,     // $name or ${name} outside of texts; `$` alone is a sign
  sign,       // one operator or bracket
};

struct PythonToken {
  TokenKind kind;
  std::string_view text;
};

// Whether a name may have the character: a letter, a digit, '_', or a part of one beyond ASCII.
bool is_word_char(char c);

// All tokens, in order. Joined, they are the expression, in whose bytes they lie.
std::vector<PythonToken> tokens_of(std::string_view expression);

// The name in `$name` or `${name}`, or nothing if the text is anything else.
std::string_view dollar_name(std::string_view text);

// The part between the quotes of a text without a prefix, or nothing where escapes, a prefix or
// three quotes make another text of it. Sets *plain to whether it is one.
std::string_view inside_quotes(std::string_view token, bool* plain);

// Whether the token is the name of an argument: `key` in sorted(x, key=len).
bool is_argument_name(const std::vector<PythonToken>& tokens, size_t at);

// Whether an expression gives names of its own: by `lambda`, `for` or `:=`.
bool makes_names(const std::vector<PythonToken>& tokens);

// The names that an expression reads: words, and $names also within texts. Not among them: keywords,
// functions of Python's that are called, names of arguments, and those that it gives itself.
std::vector<std::string> names_read(std::string_view expression);

bool is_python_keyword(const std::string& word);
// The functions that an expression may call.
bool is_python_function(const std::string& word);
// Whether the word is one of these two.
bool is_python_word(const std::string& word);
// Whether an expression may name it: these, and all other builtins and modules that expressions
// have without an import.
bool is_python_name(const std::string& word);

}  // namespace tally
