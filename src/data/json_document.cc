#include "src/data/json_document.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "src/data/json_fault.h"
#include "src/data/utf8.h"

namespace tally::train {

const nlohmann::json& JsonNode::member(const char* key, bool fits(const nlohmann::json&),
                                       const char* what) const {
  if (!has(key))
    throw std::runtime_error(
        fmt::format("{} has no \"{}\", which should be {}", place_, key, what));
  const nlohmann::json& value = value_[key];
  if (!fits(value))
    throw std::runtime_error(fmt::format("{}{}{} is a {}, and should be {}", place_, joint_, key,
                                         value.type_name(), what));
  return value;
}

JsonNode JsonNode::list(const char* key) const {
  return {member(
              key, [](const nlohmann::json& v) { return v.is_array(); }, "a list"),
          fmt::format("{}{}{}", place_, joint_, key), "."};
}

JsonNode JsonNode::at(size_t index) const {
  return {value_.at(index), fmt::format("{}[{}]", place_, index), "."};
}

const std::string& JsonNode::text(const char* key) const {
  return member(
             key, [](const nlohmann::json& v) { return v.is_string(); }, "a text")
      .get_ref<const std::string&>();
}

int64_t JsonNode::number(const char* key) const {
  return member(
             key,
             [](const nlohmann::json& v) {
               return v.is_number_integer() &&
                      !(v.is_number_unsigned() && v.get<uint64_t>() >> 63 != 0);
             },
             "an integer")
      .get<int64_t>();
}

bool JsonNode::flag(const char* key) const {
  return member(
             key, [](const nlohmann::json& v) { return v.is_boolean(); }, "true or false")
      .get<bool>();
}

nlohmann::json read_json_file(const std::string& path) {
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  std::ostringstream all;
  if (!in || !(all << in.rdbuf()))
    throw std::runtime_error(fmt::format("'{}' cannot be read: {}", path,
                                         errno != 0 ? std::strerror(errno) : "it is empty"));
  const std::string text = all.str();
  try {
    return nlohmann::json::parse(text);
  } catch (const nlohmann::json::parse_error& error) {
    const size_t at = std::min(text.size(), std::max<size_t>(error.byte, 1) - 1);
    const auto line =
        std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n');
    const size_t begin = at == 0 ? std::string::npos : text.rfind('\n', at - 1);
    const size_t column = begin == std::string::npos ? at + 1 : at - begin;
    std::string why = json_fault(error);
    // The fault begins with its place, which stands before it here.
    if (const size_t colon = why.find(": ");
        why.rfind("line ", 0) == 0 && colon != std::string::npos)
      why.erase(0, colon + 2);
    throw std::runtime_error(fmt::format("{}:{}:{}: {}", path, line + 1, column, clean_utf8(why)));
  }
}

}  // namespace tally::train
