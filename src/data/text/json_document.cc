#include "src/data/text/json_document.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "src/data/text/json_fault.h"
#include "src/data/text/text_input.h"
#include "src/data/text/utf8.h"

namespace tally::train {

std::runtime_error JsonNode::wrong_type(const char* what) const {
  return std::runtime_error(
      fmt::format("{} is {}, and should be {}", location_, with_article(value_.type_name()), what));
}

JsonNode JsonNode::member(const char* key, const char* what) const {
  if (!has(key))
    throw std::runtime_error(
        fmt::format("{} has no \"{}\", which should be {}", location_, key, what));
  return {value_[key], fmt::format("{}{}{}", location_, joint_, key), "."};
}

JsonNode JsonNode::list(const char* key) const {
  const JsonNode node = member(key, "a list");
  if (!node.value().is_array()) throw node.wrong_type("a list");
  return node;
}

JsonNode JsonNode::object(const char* key) const {
  const JsonNode node = member(key, "an object");
  if (!node.value().is_object()) throw node.wrong_type("an object");
  return node;
}

JsonNode JsonNode::at(size_t index) const {
  return {value_.at(index), fmt::format("{}[{}]", location_, index), "."};
}

const std::string& JsonNode::text() const {
  if (!value_.is_string()) throw wrong_type("a text");
  return value_.get_ref<const std::string&>();
}

const std::string& JsonNode::text(const char* key) const {
  return member(key, "a text").text();
}

int64_t JsonNode::number() const {
  if (!value_.is_number_integer() ||
      (value_.is_number_unsigned() && value_.get<uint64_t>() >> 63 != 0))
    throw wrong_type("an integer");
  return value_.get<int64_t>();
}

int64_t JsonNode::number(const char* key) const {
  return member(key, "an integer").number();
}

std::string JsonNode::name(const char* key) const {
  if (has(key) && value_[key].is_number_integer()) return value_[key].dump();
  return text(key);
}

bool JsonNode::flag(const char* key) const {
  const JsonNode node = member(key, "true or false");
  if (!node.value().is_boolean()) throw node.wrong_type("true or false");
  return node.value().get<bool>();
}

namespace {

std::string whole_file(const std::string& path) {
  if (const std::string why = why_no_file(path); !why.empty())
    throw std::runtime_error(fmt::format("'{}' cannot be read: {}", path, why));
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  std::ostringstream all;
  if (!in || !(all << in.rdbuf()))
    throw std::runtime_error(fmt::format("'{}' cannot be read: {}", path,
                                         errno != 0 ? std::strerror(errno) : "it is empty"));
  return std::move(all).str();
}

// The value of text[begin, end). Throws std::runtime_error with the location in the file.
nlohmann::json parse_part(const std::string& path, const std::string& text, size_t begin,
                          size_t end) {
  try {
    return nlohmann::json::parse(text.begin() + static_cast<std::ptrdiff_t>(begin),
                                 text.begin() + static_cast<std::ptrdiff_t>(end));
  } catch (const nlohmann::json::parse_error& error) {
    const size_t at = std::min(text.size(), begin + std::max<size_t>(error.byte, 1) - 1);
    const auto line =
        std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n');
    const size_t before = at == 0 ? std::string::npos : text.rfind('\n', at - 1);
    const size_t column = before == std::string::npos ? at + 1 : at - before;
    std::string why = json_fault(error);
    // The fault begins with its location, which stands before it here.
    if (const size_t colon = why.find(": ");
        why.rfind("line ", 0) == 0 && colon != std::string::npos)
      why.erase(0, colon + 2);
    throw std::runtime_error(fmt::format("{}:{}:{}: {}", path, line + 1, column, clean_utf8(why)));
  }
}

}  // namespace

std::vector<LocatedJson> read_json_file(const std::string& path) {
  const std::string text = whole_file(path);
  const size_t first = text.find_first_not_of(" \t\r\n");
  const size_t end = first == std::string::npos ? text.size() : text.find('\n', first);
  const bool more =
      end != std::string::npos && text.find_first_not_of(" \t\r\n", end) < text.size();
  const bool lines =
      more && nlohmann::json::accept(text.begin() + static_cast<std::ptrdiff_t>(first),
                                     text.begin() + static_cast<std::ptrdiff_t>(end));
  std::vector<LocatedJson> values;
  if (!lines) {
    values.push_back({parse_part(path, text, 0, text.size()), path});
    return values;
  }
  int64_t number = 1;
  for (size_t begin = 0; begin < text.size(); ++number) {
    const size_t stop = std::min(text.find('\n', begin), text.size());
    if (text.find_first_not_of(" \t\r", begin) < stop)
      values.push_back({parse_part(path, text, begin, stop), fmt::format("{}:{}", path, number)});
    begin = stop + 1;
  }
  return values;
}

}  // namespace tally::train
