#include "src/data/text/json_lines.h"

#include <fmt/format.h>

#include "src/data/text/json_fault.h"
#include "src/data/text/text_input.h"

namespace tally::train {

nlohmann::json parse_json_line(std::string_view line, const std::string& location) {
  nlohmann::json object;
  try {
    object = nlohmann::json::parse(line.begin(), line.end());
  } catch (const nlohmann::json::exception& error) {
    throw BadInput(fmt::format("{}: this line is not a JSON object (one per line is expected): {}",
                               location, json_fault(error)));
  }
  if (!object.is_object())
    throw BadInput(
        fmt::format("{}: this line is not a JSON object (one per line is expected)", location));
  return object;
}

const std::string& text_of_key(const nlohmann::json& object, const std::string& key,
                               const std::string& location, const char* flag) {
  const auto value = object.find(key);
  if (value == object.end())
    throw BadInput(fmt::format("{}: the object has no key \"{}\": name the key of the text with {}",
                               location, key, flag));
  if (!value->is_string())
    throw BadInput(fmt::format("{}: the value of \"{}\" is {}, and a text is expected", location,
                               key, with_article(value->type_name())));
  return value->get_ref<const std::string&>();
}

}  // namespace tally::train
