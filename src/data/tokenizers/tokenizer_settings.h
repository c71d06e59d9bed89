// Settings of how a text becomes tokens, from the files beside a vocabulary: tokenizer.json,
// tokenizer_config.json, special_tokens_map.json, added_tokens.json, and the tokenizer_class of
// config.json. A setting that changes the tokens is honoured or refused, whichever file of the
// folder is the vocabulary.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "src/data/tokenizers/bert_words.h"

namespace tally::train {

// The rules by which BERT's texts become words.
struct WordSettings {
  BertWordRules rules;
  size_t longest_word = 100;  // in characters
};

// Throws std::runtime_error with one sentence where the files in `folder` (empty: the current one)
// say something of GPT-2's tokens that is not done here: another class of tokenizer, tokens added
// to the vocabulary, another way to split, spaces or tokens around a text; or where one of them is
// not a JSON object.
void check_gpt2_settings(const std::string& folder);

// The same of BERT's, and the settings that are honoured. Settings that no file states are
// transformers' defaults, and `lower_case`. Throws as well where tokenizer_config.json and
// tokenizer.json contradict each other.
WordSettings word_settings(const std::string& folder, bool lower_case);

// Whether BERT's texts are lower-cased: do_lower_case of tokenizer_config.json, else the normalizer
// of tokenizer.json; nothing where neither says. Throws std::runtime_error with one sentence where
// they contradict each other or say something else than true or false.
std::optional<bool> stated_lower_case(const std::string& folder);

}  // namespace tally::train
