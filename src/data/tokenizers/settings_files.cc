#include "src/data/tokenizers/settings_files.h"

#include <fmt/format.h>

#include <fstream>
#include <stdexcept>

#include "src/data/text/text_input.h"

namespace tally::train {

nlohmann::json read_settings(const std::string& path) {
  if (const std::string why = why_no_file(path); !why.empty())
    throw std::runtime_error(fmt::format("'{}' cannot be read: {}", path, why));
  std::ifstream in(path, std::ios::binary);
  if (!in) return nullptr;
  nlohmann::json json = nlohmann::json::parse(in, nullptr, false);
  if (json.is_object()) return json;
  throw std::runtime_error(fmt::format(
      "'{}' is not a JSON object, so that it is not known which tokens were added to the "
      "vocabulary: get the whole file, or remove it where none were",
      path));
}

void collect_tokens(const nlohmann::json& value, std::vector<std::string>* tokens) {
  if (value.is_string()) {
    tokens->push_back(value.get<std::string>());
  } else if (value.is_object() && value.contains("content")) {
    collect_tokens(value["content"], tokens);
  } else if (value.is_structured()) {
    for (const nlohmann::json& one : value) collect_tokens(one, tokens);
  }
}

std::vector<std::string> tokens_in(const nlohmann::json& json, const std::string& name) {
  std::vector<std::string> tokens;
  for (const auto& [key, value] : json.items()) {
    if (name == added_tokens_file) {
      tokens.push_back(key);
    } else if (key.ends_with("_token") || key.ends_with("_tokens") ||
               key == "added_tokens_decoder") {
      collect_tokens(value, &tokens);
    }
  }
  return tokens;
}

}  // namespace tally::train
