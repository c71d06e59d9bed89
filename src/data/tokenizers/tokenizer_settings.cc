#include "src/data/tokenizers/tokenizer_settings.h"

#include <fmt/format.h>

#include <filesystem>
#include <set>
#include <stdexcept>
#include <vector>

#include "src/data/tokenizers/settings_files.h"
#include "src/data/tokenizers/tokenizer_json.h"

namespace tally::train {
namespace {

enum class TokenizerKind { wordpiece, byte_pairs };  // BERT's, GPT-2's

using Json = nlohmann::json;

constexpr const char* kWhole = "tokenizer.json";
constexpr const char* kConfig = "tokenizer_config.json";
constexpr const char* kSpecial = "special_tokens_map.json";
constexpr const char* kAdded = added_tokens_file;
constexpr const char* kModel = "config.json";

// A rule of BERT's words, and its names in tokenizer_config.json (null: it has none) and in the
// normalizer of tokenizer.json.
struct WordRule {
  const char* in_config;
  const char* in_normalizer;
  bool BertWordRules::*rule;
};
// lower_case is the first: the default of strip_accents depends on it.
constexpr WordRule kWordRules[] = {
    {"do_lower_case", "lowercase", &BertWordRules::lower_case},
    {"strip_accents", "strip_accents", &BertWordRules::strip_accents},
    {"tokenize_chinese_chars", "handle_chinese_chars", &BertWordRules::space_cjk},
    {nullptr, "clean_text", &BertWordRules::clean_text}};

// A setting of tokenizer_config.json that changes tokens unless it has the usual value.
struct OtherSetting {
  const char* key;
  Json usual;
};

std::vector<OtherSetting> other_settings(TokenizerKind kind) {
  // transformers chooses a file of this list by its own version.
  std::vector<OtherSetting> settings = {{"fast_tokenizer_files", {kWhole}}};
  const std::vector<OtherSetting> words = {{"truncation_side", "right"},
                                           {"padding_side", "right"},
                                           {"do_basic_tokenize", true},
                                           {"never_split", Json::array()}};
  const std::vector<OtherSetting> pairs = {
      {"add_prefix_space", false}, {"add_bos_token", false}, {"add_eos_token", false}};
  const auto& more = kind == TokenizerKind::wordpiece ? words : pairs;
  settings.insert(settings.end(), more.begin(), more.end());
  return settings;
}

// The classes of transformers that are BERT's or GPT-2's tokenizer, by this name or with "Fast".
const std::set<std::string>& known_classes(TokenizerKind kind) {
  static const std::set<std::string> words = {"BertTokenizer",
                                              "DistilBertTokenizer",
                                              "ElectraTokenizer",
                                              "MobileBertTokenizer",
                                              "ConvBertTokenizer",
                                              "SqueezeBertTokenizer",
                                              "LayoutLMTokenizer",
                                              "LxmertTokenizer",
                                              "RetriBertTokenizer",
                                              "DPRReaderTokenizer",
                                              "DPRQuestionEncoderTokenizer",
                                              "DPRContextEncoderTokenizer"};
  static const std::set<std::string> pairs = {"GPT2Tokenizer", "CodeGenTokenizer"};
  return kind == TokenizerKind::wordpiece ? words : pairs;
}

const std::set<std::string>& special_tokens(TokenizerKind kind) {
  static const std::set<std::string> words = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};
  static const std::set<std::string> pairs = {"<|endoftext|>"};
  return kind == TokenizerKind::wordpiece ? words : pairs;
}

// Whether a post_processor puts BERT's tokens around one text and around two.
bool is_bert_template(const Json& processor) {
  const Json type = processor.value("type", Json());
  const auto is_first = [&](const char* key, const char* token) {
    const Json pair = processor.value(key, Json());
    return pair.is_array() && !pair.empty() && pair[0] == token;
  };
  if (type == "BertProcessing") return is_first("cls", "[CLS]") && is_first("sep", "[SEP]");
  const auto part = [](const char* kind, const char* id, int segment) {
    return Json{{kind, {{"id", id}, {"type_id", segment}}}};
  };
  Json one = {part("SpecialToken", "[CLS]", 0), part("Sequence", "A", 0),
              part("SpecialToken", "[SEP]", 0)};
  Json two = one;
  two.push_back(part("Sequence", "B", 1));
  two.push_back(part("SpecialToken", "[SEP]", 1));
  return type == "TemplateProcessing" && processor.value("single", Json()) == one &&
         processor.value("pair", Json()) == two;
}

// The reason why a tokenizer.json makes other tokens of a text than BERT's; empty: it does not, as
// far as the file says.
std::string difference_from_bert(const Json& json) {
  const Json model = json.value("model", Json());
  if (model.is_object()) {
    if (model.value("type", Json("WordPiece")) != "WordPiece")
      return fmt::format("its model is {}, not WordPiece", model["type"].dump());
    if (model.value("continuing_subword_prefix", Json("##")) != "##")
      return "its pieces are not continued by \"##\"";
    if (model.value("unk_token", Json("[UNK]")) != "[UNK]")
      return fmt::format("its model's unk_token is {}", model["unk_token"].dump());
  }
  const auto type_of = [&](const char* key) {
    return json[key].is_object() ? json[key].value("type", Json()) : Json();
  };
  if (json.contains("normalizer") && type_of("normalizer") != "BertNormalizer")
    return "its normalizer is not BertNormalizer";
  if (json.contains("pre_tokenizer") && type_of("pre_tokenizer") != "BertPreTokenizer")
    return "its pre_tokenizer is not BertPreTokenizer";
  const Json around = json.value("post_processor", Json());
  if (around.is_object() && !is_bert_template(around))
    return "its post_processor does not put [CLS] before a text and [SEP] after it";
  for (const char* key : {"truncation", "padding"}) {
    const Json way = json.value(key, Json());
    if (way.is_object() && way.value("direction", Json("Right")) != "Right")
      return fmt::format("its {} has the direction {}", key, way["direction"].dump());
  }
  return "";
}

// The files of a folder, each null where it is missing.
class TokenizerFolder {
 public:
  explicit TokenizerFolder(const std::string& folder) : folder_(folder) {
    whole_ = read(kWhole), config_ = read(kConfig), special_ = read(kSpecial);
    added_ = read(kAdded), model_ = read(kModel);
  }

  void check(TokenizerKind kind) const {
    refuse_added_tokens(kind);
    check_class(kind);
    if (kind == TokenizerKind::wordpiece) check_roles();
    for (const OtherSetting& s : other_settings(kind)) {
      if (config_.contains(s.key) && !config_[s.key].is_null() && config_[s.key] != s.usual)
        throw std::runtime_error(fmt::format(
            "'{}' has \"{}\": {}, and texts are tokenized without it: tokenize the text elsewhere, "
            "or remove the setting where the model was trained without it",
            path(kConfig), s.key, config_[s.key].dump()));
    }
    if (!whole_.is_object()) return;
    const bool words = kind == TokenizerKind::wordpiece;
    const std::string why = words ? difference_from_bert(whole_) : difference_from_gpt2(whole_);
    if (!why.empty())
      throw std::runtime_error(fmt::format("'{}' is not a tokenizer of {} kind: {}", path(kWhole),
                                           words ? "BERT's" : "GPT-2's", why));
  }

  std::optional<bool> lower_case() const {
    word_settings(true);  // files that contradict each other do not decide it
    for (const auto& [said, name] : {std::pair(said_by_config(), kWordRules[0].in_config),
                                     std::pair(normalizer(), kWordRules[0].in_normalizer)})
      if (said && said->contains(name) && !(*said)[name].is_null())
        return (*said)[name].get<bool>();
    return std::nullopt;
  }

  WordSettings word_settings(bool lower_case) const {
    const Json* config = said_by_config();
    const Json* in_whole = normalizer();
    WordSettings settings;
    if (config && in_whole) lower_case = true;  // the default of both
    settings.rules = rules_of(config ? *config : Json::object(), path(kConfig),
                              &WordRule::in_config, lower_case);
    if (!in_whole) return settings;
    const BertWordRules other =
        rules_of(*in_whole, path(kWhole), &WordRule::in_normalizer, lower_case);
    const size_t longest = longest_word();
    if (config) {
      for (const WordRule& r : kWordRules)
        if (settings.rules.*r.rule != other.*r.rule)
          throw contradiction(r, settings.rules.*r.rule, other.*r.rule);
      if (longest != settings.longest_word)
        throw std::runtime_error(fmt::format(
            "'{}' has a max_input_chars_per_word of {}, for which the tokenizer_class of '{}' has "
            "{}: make them agree",
            path(kWhole), longest, path(kConfig), settings.longest_word));
    }
    return {other, longest};
  }

 private:
  std::string path(const char* name) const { return (folder_ / name).string(); }

  Json read(const char* name) const { return read_settings(path(name)); }

  // tokenizer_config.json's comes before config.json's. Empty: none.
  std::string tokenizer_class(const char** file) const {
    for (const auto& [name, json] : {std::pair(kConfig, &config_), std::pair(kModel, &model_)}) {
      *file = name;
      if (json->contains("tokenizer_class") && (*json)["tokenizer_class"].is_string())
        return (*json)["tokenizer_class"].get<std::string>();
    }
    return "";
  }

  // The class that takes tokenizer.json as it is. BERT's and GPT-2's take the vocabulary alone from
  // there, and their settings from tokenizer_config.json.
  bool takes_whole() const {
    const char* file = nullptr;
    const std::string name = tokenizer_class(&file);
    return whole_.is_object() && (name == "PreTrainedTokenizerFast" || name == "TokenizersBackend");
  }

  void check_class(TokenizerKind kind) const {
    const char* file = nullptr;
    std::string name = tokenizer_class(&file);
    if (name.empty() || takes_whole()) return;
    const std::string said = name;
    if (name.ends_with("Fast")) name.resize(name.size() - 4);
    if (known_classes(kind).count(name) > 0) return;
    throw std::runtime_error(fmt::format(
        "'{}' has the tokenizer_class \"{}\", and these files are read as a {}: tokenize the text "
        "elsewhere, or correct the class where that is what they are",
        path(file), said, kind == TokenizerKind::wordpiece ? "BertTokenizer" : "GPT2Tokenizer"));
  }

  void refuse_added_tokens(TokenizerKind kind) const {
    for (const auto& [name, json] : {std::pair(kWhole, &whole_), std::pair(kAdded, &added_),
                                     std::pair(kConfig, &config_), std::pair(kSpecial, &special_)})
      for (const std::string& token : tokens_in(*json, name))
        if (special_tokens(kind).count(token) == 0)
          throw std::runtime_error(fmt::format(
              "'{}' adds the token \"{}\" to the vocabulary, and texts are tokenized without added "
              "tokens: {}, or remove the token from this file where no text has it",
              path(name), token,
              kind == TokenizerKind::byte_pairs && whole_.is_object()
                  ? "take --tokenizer-type HuggingFaceTokenizer"
                  : "tokenize the text elsewhere"));
  }

  void check_roles() const {
    for (const auto& [name, json] : {std::pair(kConfig, &config_), std::pair(kSpecial, &special_)})
      for (const auto& [role, token] :
           {std::pair("pad_token", "[PAD]"), std::pair("unk_token", "[UNK]"),
            std::pair("cls_token", "[CLS]"), std::pair("sep_token", "[SEP]"),
            std::pair("mask_token", "[MASK]")}) {
        std::vector<std::string> named;
        if (json->contains(role)) collect_tokens((*json)[role], &named);
        if (!named.empty() && named.front() != token)
          throw std::runtime_error(fmt::format(
              "'{}' has the {} \"{}\", and BERT's is {} here: tokenize the text elsewhere",
              path(name), role, named.front(), token));
      }
  }

  // Null where the file does not decide. Where it is missing, transformers chooses the class by
  // config.json's model_type, and has the class's defaults.
  const Json* said_by_config() const {
    static const Json defaults = Json::object();
    if (takes_whole()) return nullptr;
    if (config_.is_object()) return &config_;
    return whole_.is_object() && model_.is_object() && model_.contains("model_type") ? &defaults
                                                                                     : nullptr;
  }
  const Json* normalizer() const {
    const bool there = whole_.contains("normalizer") && whole_["normalizer"].is_object();
    return there ? &whole_["normalizer"] : nullptr;
  }

  size_t longest_word() const {
    const Json usual = WordSettings{}.longest_word;
    const Json model = whole_.value("model", Json());
    const Json longest = model.is_object() ? model.value("max_input_chars_per_word", usual) : usual;
    if (longest.is_number_unsigned()) return longest.get<size_t>();
    throw std::runtime_error(
        fmt::format("'{}' has a \"max_input_chars_per_word\" of {}", path(kWhole), longest.dump()));
  }

  static BertWordRules rules_of(const Json& json, const std::string& file,
                                const char* WordRule::*name, bool lower_case) {
    BertWordRules rules;
    for (const WordRule& r : kWordRules) {
      const bool first = r.rule == &BertWordRules::lower_case;
      rules.*r.rule = first                                     ? lower_case
                      : r.rule == &BertWordRules::strip_accents ? rules.lower_case
                                                                : true;
      const char* key = r.*name;
      if (!key || !json.contains(key) || json[key].is_null()) continue;
      if (!json[key].is_boolean())
        throw std::runtime_error(
            fmt::format("'{}' has {} for \"{}\", which is neither true nor false", file,
                        json[key].dump(), key));
      rules.*r.rule = json[key].get<bool>();
    }
    return rules;
  }

  std::runtime_error contradiction(const WordRule& r, bool config, bool whole) const {
    return std::runtime_error(fmt::format(
        "'{}' has {} for \"{}\", and {}: transformers reads the second, the library tokenizers the "
        "first: make them agree, as the model was trained",
        path(kWhole), whole, r.in_normalizer, said_of(r, config)));
  }
  std::string said_of(const WordRule& r, bool config) const {
    if (!config_.is_object())
      return fmt::format("'{}' does not exist, which is {} for \"{}\" then", path(kConfig), config,
                         r.in_config ? r.in_config : r.in_normalizer);
    if (!r.in_config)
      return fmt::format("the tokenizer_class of '{}' has {}", path(kConfig), config);
    return fmt::format("'{}' has {} for \"{}\"{}", path(kConfig), config, r.in_config,
                       config_.contains(r.in_config) ? "" : " (its default)");
  }

  const std::filesystem::path folder_;
  Json whole_, config_, special_, added_, model_;
};

}  // namespace

void check_gpt2_settings(const std::string& folder) {
  TokenizerFolder(folder).check(TokenizerKind::byte_pairs);
}

std::optional<bool> stated_lower_case(const std::string& folder) {
  return TokenizerFolder(folder).lower_case();
}

WordSettings word_settings(const std::string& folder, bool lower_case) {
  const TokenizerFolder files(folder);
  files.check(TokenizerKind::wordpiece);
  return files.word_settings(lower_case);
}

}  // namespace tally::train
