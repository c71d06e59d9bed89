#include "src/data/tokenizers/json_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <stdexcept>

#include "src/data/tokenizers/settings_files.h"

namespace tally::train {
namespace {

using Json = nlohmann::json;

constexpr const char* kConfigFile = "tokenizer_config.json";
constexpr const char* kSpecialFile = "special_tokens_map.json";

class JsonFolder {
 public:
  JsonFolder(const std::string& folder, const ByteLevelRules& rules)
      : folder_(folder),
        rules_(rules),
        config_(read_settings(path(kConfigFile))),
        special_(read_settings(path(kSpecialFile))),
        added_(read_settings(path(added_tokens_file))) {}

  void check() const {
    for (const auto& [name, json] :
         {std::pair(kConfigFile, &config_), std::pair(kSpecialFile, &special_),
          std::pair(added_tokens_file, &added_)})
      for (const std::string& token : tokens_in(*json, name))
        if (!find(token))
          throw refuse(name, fmt::format("adds the token \"{}\"", token), "has it not");
    check_numbers();
    check_settings();
    check_class();
  }

  std::optional<int32_t> end() const {
    for (const Json* json : {&config_, &special_}) {
      std::vector<std::string> named;
      if (json->contains("eos_token")) collect_tokens((*json)["eos_token"], &named);
      if (!named.empty()) return find(named[0])->id;  // check() has found it
    }
    for (const char* usual : {"<|endoftext|>", "<|end_of_text|>"})
      if (const AddedToken* token = find(usual)) return token->id;
    return std::nullopt;
  }

 private:
  std::string path(const char* name) const {
    return (std::filesystem::path(folder_) / name).string();
  }
  std::runtime_error refuse(const char* name, const std::string& says,
                            const std::string& other) const {
    return std::runtime_error(
        fmt::format("'{}' {}, and '{}' {}: make them agree, as the model was trained", path(name),
                    says, path("tokenizer.json"), other));
  }
  const AddedToken* find(const std::string& content) const {
    const auto found =
        std::find_if(rules_.added.begin(), rules_.added.end(),
                     [&](const AddedToken& token) { return token.content == content; });
    return found == rules_.added.end() ? nullptr : &*found;
  }

  // added_tokens.json: token: number. added_tokens_decoder: number: token with its flags.
  void check_numbers() const {
    const auto check = [&](const char* name, const std::string& token, const std::string& number) {
      const AddedToken* known = find(token);
      if (known && std::to_string(known->id) != number)
        throw refuse(name, fmt::format("has the number {} for \"{}\"", number, token),
                     fmt::format("has {}", known->id));
    };
    for (const auto& [token, number] : added_.items())
      check(added_tokens_file, token, number.dump());
    const Json decoder =
        config_.is_object() ? config_.value("added_tokens_decoder", Json()) : Json();
    for (const auto& [number, token] : decoder.items()) {
      std::vector<std::string> named;
      collect_tokens(token, &named);
      if (named.empty()) continue;
      check(kConfigFile, named[0], number);
      if (token.is_object()) check_flags(*find(named[0]), token);
    }
  }

  void check_flags(const AddedToken& known, const Json& token) const {
    for (const auto& [key, flag] :
         {std::pair("single_word", &AddedToken::single_word),
          std::pair("lstrip", &AddedToken::lstrip), std::pair("rstrip", &AddedToken::rstrip),
          std::pair("normalized", &AddedToken::normalized),
          std::pair("special", &AddedToken::special)})
      if (token.contains(key) && token[key] != known.*flag)
        throw refuse(
            kConfigFile,
            fmt::format("has {} for \"{}\" of \"{}\"", token[key].dump(), key, known.content),
            fmt::format("has {}", known.*flag));
  }

  void check_settings() const {
    const bool space = std::any_of(rules_.steps.begin(), rules_.steps.end(),
                                   [](const SplitStep& step) { return step.prefix_space; });
    const std::pair<const char*, Json> settings[] = {{"add_prefix_space", space},
                                                     {"add_bos_token", !rules_.before.empty()},
                                                     {"add_eos_token", !rules_.after.empty()},
                                                     {"split_special_tokens", false},
                                                     {"fast_tokenizer_files", {"tokenizer.json"}}};
    for (const auto& [key, as_whole] : settings)
      if (config_.contains(key) && !config_[key].is_null() && config_[key] != as_whole)
        throw refuse(kConfigFile, fmt::format("has \"{}\": {}", key, config_[key].dump()),
                     "is read without it");
  }

  // A class of transformers that makes the rules itself, whatever tokenizer.json says.
  void check_rules(const std::string& name, const ByteLevelRules& own) const {
    if (rules_.nfc != own.nfc || rules_.ignore_merges || rules_.steps != own.steps)
      throw refuse(kConfigFile, fmt::format("has the tokenizer_class \"{}\"", name),
                   "has other rules than that class");
  }

  void check_class() const {
    if (!config_.contains("tokenizer_class") || !config_["tokenizer_class"].is_string()) return;
    const auto said = config_["tokenizer_class"].get<std::string>();
    std::string name = said;
    if (name.ends_with("Fast")) name.resize(name.size() - 4);
    if (name == "PreTrainedTokenizer" || name == "TokenizersBackend") return;
    const bool space = config_.contains("add_prefix_space") && config_["add_prefix_space"] == true;
    if (name == "Qwen2Tokenizer") return check_rules(said, qwen2_rules(space));
    if (name == "GPT2Tokenizer") return check_rules(said, gpt2_rules(space));
    throw refuse(kConfigFile, fmt::format("has the tokenizer_class \"{}\"", said),
                 "is read as a PreTrainedTokenizerFast or a Qwen2Tokenizer");
  }

  const std::string folder_;
  const ByteLevelRules& rules_;
  const Json config_, special_, added_;
};

}  // namespace

std::optional<int32_t> check_json_settings(const std::string& folder, const ByteLevelRules& rules) {
  const JsonFolder files(folder, rules);
  files.check();
  return files.end();
}

}  // namespace tally::train
