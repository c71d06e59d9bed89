// The error in a JSON text, in a reader's words.
#pragma once

#include <exception>
#include <string>

namespace tally::train {

// The sentence of a nlohmann::json exception without the library's own labels: "line 1, column 13:
// unexpected end of input; expected '}'".
inline std::string json_fault(const std::exception& error) {
  std::string text = error.what();
  const auto drop = [&](const char* from, const char* until) {
    const size_t begin = text.find(from);
    if (begin == std::string::npos) return;
    const std::string ending = until;
    const size_t end = text.find(ending, begin);
    if (end != std::string::npos) text.erase(begin, end + ending.size() - begin);
  };
  drop("[json.exception", "] ");
  drop("parse error at ", "at ");
  drop("syntax error while parsing", " - ");
  return text;
}

// The kind of a value with its article, from json::type_name(): "an array", "null".
inline std::string with_article(const std::string& type) {
  if (type == "null") return type;
  return (type == "array" || type == "object" ? "an " : "a ") + type;
}

}  // namespace tally::train
