#include "src/data/tokenizers/byte_level_rules.h"

#include <fmt/format.h>

#include <initializer_list>
#include <limits>
#include <set>
#include <stdexcept>

#include "src/data/tokenizers/pattern_syntax.h"

namespace tally::train {
namespace {

using Json = nlohmann::json;
using Cuts = SplitStep::Cuts;

// Radford et al. 2019; the tokenizer.json of Llama 3 and of Qwen 2.
constexpr const char* kGpt2Words =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr const char* kLlama3Words =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kQwen2Words =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

Cuts cuts_of(const std::string& pattern) {
  if (pattern == kGpt2Words || pattern == kLlama3Words || pattern == kQwen2Words)
    return Cuts::between_classes;
  // Runs of numbers, which no cut divides.
  if (pattern == R"(\p{N})" || pattern == R"(\p{N}{1,3})") return Cuts::anywhere;
  return Cuts::none;
}

SplitStep words_by(const char* pattern) {
  SplitStep step;
  step.pattern = pcre2_pattern(pattern);
  step.cuts = cuts_of(pattern);
  return step;
}

// A value of a tokenizer.json and its location in it, as "pre_tokenizer.pretokenizers[0]".
class JsonPart {
 public:
  JsonPart(const Json& json, const std::string& path, std::string location)
      : json_(json), path_(path), location_(std::move(location)) {}

  [[noreturn]] void refuse(const std::string& why) const {
    throw std::runtime_error(
        fmt::format("'{}': \"{}\" {}: tokenize the text elsewhere", path_, location_, why));
  }
  [[noreturn]] void refuse_value() const {
    const std::string value = json_.dump(-1, ' ', false, Json::error_handler_t::replace);
    refuse(fmt::format("is {}, which is not supported",
                       value.size() > 200 ? value.substr(0, 200) + "..." : value));
  }
  const Json& json() const { return json_; }
  bool null() const { return json_.is_null(); }

  // Null where it is missing.
  JsonPart operator[](const char* key) const {
    static const Json none;
    const auto found = json_.find(key);
    return {found == json_.end() ? none : *found, path_,
            location_.empty() ? key : fmt::format("{}.{}", location_, key)};
  }
  std::vector<JsonPart> list() const {
    std::vector<JsonPart> parts;
    if (null()) return parts;
    if (!json_.is_array()) refuse("is not a list");
    for (size_t n = 0; n < json_.size(); ++n)
      parts.emplace_back(json_[n], path_, fmt::format("{}[{}]", location_, n));
    return parts;
  }
  // An object with no other keys than these.
  void only(std::initializer_list<const char*> keys) const {
    if (!json_.is_object()) refuse("is not an object");
    const std::set<std::string> known(keys.begin(), keys.end());
    for (const auto& [key, value] : json_.items())
      if (known.count(key) == 0) (*this)[key.c_str()].refuse("is not known here");
  }
  bool flag(bool otherwise) const {
    if (null()) return otherwise;
    if (!json_.is_boolean()) refuse("is neither true nor false");
    return json_.get<bool>();
  }
  std::string text() const {
    if (!json_.is_string()) refuse("is not a text");
    return json_.get<std::string>();
  }
  std::string type() const {
    if (!json_.is_object()) refuse_value();
    return (*this)["type"].text();
  }

 private:
  const Json& json_;
  const std::string& path_;
  std::string location_;
};

constexpr int kDeepestSequence = 8;

bool reads_nfc(const JsonPart& normalizer, int depth = 0) {
  if (normalizer.null()) return false;
  const std::string type = normalizer.type();
  if (type == "NFC") {
    normalizer.only({"type"});
    return true;
  }
  if (type != "Sequence" || depth > kDeepestSequence) normalizer["type"].refuse_value();
  normalizer.only({"type", "normalizers"});
  bool nfc = false;
  for (const JsonPart& part : normalizer["normalizers"].list())
    nfc = reads_nfc(part, depth + 1) || nfc;
  return nfc;
}

SplitBehavior behavior_of(const JsonPart& behavior) {
  const std::string name = behavior.text();
  if (name == "Isolated") return SplitBehavior::isolated;
  if (name == "Removed") return SplitBehavior::removed;
  if (name == "MergedWithPrevious") return SplitBehavior::merged_with_previous;
  if (name == "MergedWithNext") return SplitBehavior::merged_with_next;
  if (name == "Contiguous") return SplitBehavior::contiguous;
  behavior.refuse_value();
}

SplitStep split_step(const JsonPart& split) {
  split.only({"type", "pattern", "behavior", "invert"});
  SplitStep step;
  step.behavior = behavior_of(split["behavior"]);
  step.invert = split["invert"].flag(false);
  const JsonPart pattern = split["pattern"];
  pattern.only({"Regex", "String"});
  if (pattern.json().size() != 1) pattern.refuse("is not one pattern");
  if (const JsonPart literal = pattern["String"]; !literal.null()) {
    step.pattern = pcre2_literal(literal.text());
    if (step.pattern.empty()) literal.refuse_value();
    return step;
  }
  const JsonPart regex = pattern["Regex"];
  try {
    step.pattern = pcre2_pattern(regex.text());
  } catch (const std::runtime_error& error) {
    regex.refuse(fmt::format("has {}, which is not supported", error.what()));
  }
  const bool all = (step.behavior == SplitBehavior::isolated && !step.invert) ||
                   (step.behavior == SplitBehavior::removed && step.invert);
  if (all) step.cuts = cuts_of(regex.text());
  return step;
}

// Returns whether it is ByteLevel, which is the last.
bool read_steps(const JsonPart& part, std::vector<SplitStep>* steps, int depth = 0) {
  const std::string type = part.type();
  if (type == "Sequence" && depth <= kDeepestSequence) {
    part.only({"type", "pretokenizers"});
    bool last = false;
    for (const JsonPart& one : part["pretokenizers"].list()) {
      if (last) one.refuse("comes after ByteLevel, which is not supported");
      last = read_steps(one, steps, depth + 1);
    }
    return last;
  }
  if (type == "Split") {
    steps->push_back(split_step(part));
  } else if (type == "Digits") {
    part.only({"type", "individual_digits"});
    SplitStep step = words_by(R"(\p{N})");
    if (!part["individual_digits"].flag(false)) step.behavior = SplitBehavior::contiguous;
    steps->push_back(step);
  } else if (type == "ByteLevel") {
    part.only({"type", "add_prefix_space", "trim_offsets", "use_regex"});
    SplitStep step;
    if (part["use_regex"].flag(true)) step = words_by(kGpt2Words);
    step.prefix_space = part["add_prefix_space"].flag(true);
    // A step that does nothing.
    if (!step.pattern.empty() || step.prefix_space || steps->empty()) steps->push_back(step);
    return true;
  } else {
    part["type"].refuse_value();
  }
  return false;
}

int32_t token_number(const JsonPart& id) {
  if (!id.json().is_number_unsigned() ||
      id.json().get<uint64_t>() >= std::numeric_limits<int32_t>::max())
    id.refuse_value();
  return id.json().get<int32_t>();
}

AddedToken added_token(const JsonPart& part) {
  part.only({"id", "content", "single_word", "lstrip", "rstrip", "normalized", "special"});
  AddedToken token;
  token.content = part["content"].text();
  token.id = token_number(part["id"]);
  token.special = part["special"].flag(false);
  token.single_word = part["single_word"].flag(false);
  token.lstrip = part["lstrip"].flag(false);
  token.rstrip = part["rstrip"].flag(false);
  token.normalized = part["normalized"].flag(!token.special);
  if (token.content.empty()) part["content"].refuse("is empty");
  return token;
}

// The tokens of a template before and after the text, "$A".
void read_template(const JsonPart& processor, ByteLevelRules* rules) {
  processor.only({"type", "single", "pair", "special_tokens"});
  bool text_seen = false;
  for (const JsonPart& piece : processor["single"].list()) {
    piece.only({"Sequence", "SpecialToken"});
    if (const JsonPart text = piece["Sequence"]; !text.null()) {
      if (text_seen || text["id"].text() != "A") piece.refuse_value();
      text_seen = true;
      continue;
    }
    const JsonPart named = processor["special_tokens"][piece["SpecialToken"]["id"].text().c_str()];
    if (named["ids"].null()) named.refuse("has no numbers");
    for (const JsonPart& id : named["ids"].list())
      (text_seen ? rules->after : rules->before).push_back(token_number(id));
  }
  if (!text_seen) processor["single"].refuse_value();
}

void read_processor(const JsonPart& processor, ByteLevelRules* rules, int depth = 0) {
  if (processor.null()) return;
  const std::string type = processor.type();
  if (type == "ByteLevel") return;  // it changes offsets only
  if (type == "TemplateProcessing") {
    // A second one would go around the first one's tokens.
    if (!rules->before.empty() || !rules->after.empty()) processor.refuse_value();
    return read_template(processor, rules);
  }
  if (type != "Sequence" || depth > kDeepestSequence) processor["type"].refuse_value();
  processor.only({"type", "processors"});
  for (const JsonPart& one : processor["processors"].list()) read_processor(one, rules, depth + 1);
}

void check_model(const JsonPart& model) {
  model.only({"type", "dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix",
              "fuse_unk", "byte_fallback", "ignore_merges", "vocab", "merges"});
  if (!model["type"].null() && model["type"].text() != "BPE") model["type"].refuse_value();
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"})
    if (!model[key].null() && !model[key].text().empty()) model[key].refuse_value();
  if (const Json& rate = model["dropout"].json(); !rate.is_null() && rate != 0)
    model["dropout"].refuse_value();
  if (model["byte_fallback"].flag(false)) model["byte_fallback"].refuse_value();
}

}  // namespace

ByteLevelRules gpt2_rules(bool prefix_space) {
  ByteLevelRules rules;
  rules.steps = {words_by(kGpt2Words)};
  rules.steps[0].prefix_space = prefix_space;
  return rules;
}

ByteLevelRules qwen2_rules(bool prefix_space) {
  ByteLevelRules rules;
  rules.nfc = true;
  rules.steps = {words_by(kQwen2Words)};
  if (prefix_space) rules.steps.emplace_back().prefix_space = true;
  return rules;
}

ByteLevelRules read_byte_level_rules(const Json& json, const std::string& path) {
  const JsonPart whole(json, path, "");
  whole.only({"version", "truncation", "padding", "added_tokens", "normalizer", "pre_tokenizer",
              "post_processor", "decoder", "model"});
  for (const char* key : {"truncation", "padding"})
    if (!whole[key].null()) whole[key].refuse_value();
  if (!whole["version"].null() && whole["version"].text() != "1.0") whole["version"].refuse_value();
  check_model(whole["model"]);
  ByteLevelRules rules;
  rules.ignore_merges = whole["model"]["ignore_merges"].flag(false);
  rules.nfc = reads_nfc(whole["normalizer"]);
  const JsonPart words = whole["pre_tokenizer"];
  if (words.null() || !read_steps(words, &rules.steps))
    words.refuse("does not end with ByteLevel, so that this is another kind of tokenizer");
  std::set<std::string> contents;
  for (const JsonPart& part : whole["added_tokens"].list()) {
    rules.added.push_back(added_token(part));
    if (!contents.insert(rules.added.back().content).second)
      part["content"].refuse("is there twice");
  }
  read_processor(whole["post_processor"], &rules);
  return rules;
}

}  // namespace tally::train
