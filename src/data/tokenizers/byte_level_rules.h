// The rules by which a byte-level BPE tokenizer prepares a text before it joins bytes, and the
// tokens that it adds: the parts of a tokenizer.json beside vocabulary and merges.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace tally::train {

// Uses of the matches of a pattern, by the names of tokenizers' SplitDelimiterBehavior.
enum class SplitBehavior { isolated, removed, merged_with_previous, merged_with_next, contiguous };

// A step that splits each piece of the step before it. The pieces of the last step are the words.
struct SplitStep {
  std::string pattern;  // a PCRE2 pattern; empty: a piece stays whole
  SplitBehavior behavior = SplitBehavior::isolated;
  bool invert = false;        // the texts between the matches are taken for the matches
  bool prefix_space = false;  // a space goes before each piece that has none
  // Places where a text may be cut (Tokenizer::safe_cut).
  enum class Cuts {
    none,
    between_classes,  // after a letter or number, and before a blank: no word continues there
    anywhere,         // its matches stay what they are wherever a text of between_classes is cut
  } cuts = Cuts::none;
  bool operator==(const SplitStep&) const = default;
};

// A token that texts are cut at.
struct AddedToken {
  std::string content;
  int32_t id = 0;
  bool single_word = false;  // not within a word
  bool lstrip = false;       // takes the white space before it
  bool rstrip = false;       // and after it
  bool normalized = true;    // is looked for in the normalized text
  bool special = false;
  bool operator==(const AddedToken&) const = default;
};

struct ByteLevelRules {
  bool nfc = false;  // the text is normalized
  std::vector<SplitStep> steps;
  std::vector<AddedToken> added;
  bool ignore_merges = false;          // a word that is a token is that token
  std::vector<int32_t> before, after;  // tokens around a document
};

// GPT-2's and Qwen 2's. The added tokens are not among them.
ByteLevelRules gpt2_rules(bool prefix_space = false);
ByteLevelRules qwen2_rules(bool prefix_space = false);

// Reads the rules of a tokenizer.json. Throws std::runtime_error, whose one sentence has `path` and
// the key of what is not supported.
ByteLevelRules read_byte_level_rules(const nlohmann::json& json, const std::string& path);

}  // namespace tally::train
