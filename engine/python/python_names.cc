#include "engine/python/python_names.h"

#include <set>
#include <string_view>

namespace tally {

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
