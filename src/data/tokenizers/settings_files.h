// The files of JSON beside a vocabulary.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace tally::train {

inline constexpr const char* added_tokens_file = "added_tokens.json";

// Null where there is no such file. Throws std::runtime_error with one sentence where it is not a
// JSON object.
nlohmann::json read_settings(const std::string& path);

// The tokens in a value of a tokenizer's file: a text, an object with its "content", or a list or
// an object of such values.
void collect_tokens(const nlohmann::json& value, std::vector<std::string>* tokens);

// The files are read as transformers reads them: added_tokens.json has a number for each token; the
// others have a key for each role ("pad_token"), lists ("added_tokens", "extra_special_tokens"),
// and tokens by number.
std::vector<std::string> tokens_in(const nlohmann::json& json, const std::string& name);

}  // namespace tally::train
