// Settings in the files beside a tokenizer.json. transformers reads them and changes the
// tokenizer by them, the library tokenizers does not, so they must agree with it.
#pragma once

#include <optional>
#include <string>

#include "src/data/tokenizers/byte_level_rules.h"

namespace tally::train {

// The number of the token that ends a document: the eos_token of tokenizer_config.json, else of
// special_tokens_map.json, else the one named <|endoftext|> or <|end_of_text|>; nothing where there
// is none. `rules`: of the tokenizer.json in `folder`. Throws std::runtime_error with one sentence
// where a file of the folder contradicts them.
std::optional<int32_t> check_json_settings(const std::string& folder, const ByteLevelRules& rules);

}  // namespace tally::train
