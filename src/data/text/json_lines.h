// Lines of JSON, one object a line.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace tally::train {

// The object of a line. `location` is that of the line, as "'FILE':12", for messages. Throws
// BadInput with one sentence where it is not an object.
nlohmann::json parse_json_line(std::string_view line, const std::string& location);

// The text of a key. Throws BadInput with one sentence where there is none. `flag`: the flag that
// names the key.
const std::string& text_of_key(const nlohmann::json& object, const std::string& key,
                               const std::string& location, const char* flag);

}  // namespace tally::train
