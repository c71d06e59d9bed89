#include "src/data/tokenizers/tokenizer_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "src/data/text/text_input.h"

namespace tally::train {
namespace {

using Json = nlohmann::json;

// The two tokens of "left right", empty where there are not two.
std::pair<std::string, std::string> halves(const std::string& line) {
  const size_t space = line.find(' ');
  if (space == std::string::npos || space == 0 || space + 1 == line.size() ||
      line.find(' ', space + 1) != std::string::npos)
    return {};
  return {line.substr(0, space), line.substr(space + 1)};
}

bool absent(const Json& json, const char* key) {
  if (!json.contains(key)) return true;
  const Json& value = json[key];
  if (value.is_string()) return value.get_ref<const std::string&>().empty();
  if (value.is_number()) return value == 0;
  return value.empty() || value == false;
}

// Whether a post_processor puts tokens around a text.
bool adds_tokens(const Json& processor) {
  if (!processor.is_object()) return false;
  const Json type = processor.value("type", Json());
  if (type == "ByteLevel") return false;
  if (type == "TemplateProcessing")
    return processor.value("single", Json()).dump().find("SpecialToken") != std::string::npos;
  if (type != "Sequence") return true;
  const Json parts = processor.value("processors", Json::array());
  return std::any_of(parts.begin(), parts.end(), adds_tokens);
}

}  // namespace

std::string difference_from_gpt2(const Json& json) {
  if (!json.contains("model") || !json["model"].is_object()) return "";
  const Json& model = json["model"];
  if (model.contains("type") && model["type"] != "BPE")
    return fmt::format("its model is {}, not BPE", model["type"].dump());
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix", "byte_fallback",
                          "ignore_merges", "dropout"}) {
    if (!absent(model, key)) return fmt::format("its model has \"{}\": {}", key, model[key].dump());
  }
  if (!absent(json, "normalizer")) return "it has a normalizer";
  const Json words = json.value("pre_tokenizer", Json());
  if (!words.is_object() || words.value("type", "") != "ByteLevel")
    return "its pre_tokenizer is not ByteLevel";
  if (!absent(words, "add_prefix_space")) return "its pre_tokenizer puts a space before the text";
  if (words.contains("use_regex") && words["use_regex"] == false)
    return "its pre_tokenizer does not split words by GPT-2's pattern";
  const Json around = json.value("post_processor", Json());
  if (adds_tokens(around)) return "its post_processor puts tokens around a text";
  return "";
}

namespace {

MergeLines merges_of(const Json& list, const std::string& path) {
  MergeLines merges;
  for (const Json& entry : list) {
    const std::string location = fmt::format("'{}', merge {}", path, merges.size() + 1);
    std::pair<std::string, std::string> pair;
    if (entry.is_string()) pair = halves(entry.get<std::string>());
    if (entry.is_array() && entry.size() == 2 && entry[0].is_string() && entry[1].is_string())
      pair = {entry[0].get<std::string>(), entry[1].get<std::string>()};
    if (pair.first.empty() || pair.second.empty())
      throw std::runtime_error(
          fmt::format("{}: expected two tokens, found {}", location, entry.dump()));
    merges.push_back({pair.first, pair.second, location});
  }
  return merges;
}

}  // namespace

std::string read_tokenizer_file(const std::string& path, const char* flag) {
  if (const std::string why = why_no_file(path); !why.empty())
    throw std::runtime_error(fmt::format("{} '{}' cannot be read: {}", flag, path, why));
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  if (!in || !(text << in.rdbuf())) {
    throw std::runtime_error(fmt::format("{} '{}' cannot be read: {}", flag, path,
                                         errno != 0 ? std::strerror(errno) : "it is empty"));
  }
  return text.str();
}

TokenizerJson pairs_of_tokenizer_json(const Json& json, const std::string& path) {
  const auto refuse = [&](const std::string& why) {
    return std::runtime_error(
        fmt::format("'{}' is not a tokenizer of byte-level BPE: {}", path, why));
  };
  const Json model = json.value("model", Json());
  if (!model.is_object() || !model.value("vocab", Json()).is_object())
    throw refuse("it has no vocabulary");
  const Json merges = model.value("merges", Json());
  if (!merges.is_array()) throw refuse("it has no merges");
  return {model["vocab"], merges_of(merges, path)};
}

TokenizerJson split_tokenizer_json(Json json, const std::string& path) {
  if (!json.is_object() || !json.contains("model") || !json["model"].is_object())
    return {std::move(json), std::nullopt};
  const auto refuse = [&](const std::string& why) {
    return std::runtime_error(
        fmt::format("'{}' is not a tokenizer of GPT-2's kind: {}: HuggingFaceTokenizer takes other "
                    "tokenizers of byte-level BPE",
                    path, why));
  };
  if (const std::string why = difference_from_gpt2(json); !why.empty()) throw refuse(why);
  TokenizerJson parts = pairs_of_tokenizer_json(json, path);
  if (parts.merges->empty()) throw refuse("it has no merges");
  for (const Json& added : json.value("added_tokens", Json::array())) {
    if (!added.is_object() || !added.contains("content") || !added["content"].is_string() ||
        !added.contains("id"))
      throw refuse("an added token has no content or number");
    parts.vocabulary[added["content"].get<std::string>()] = added["id"];
  }
  return parts;
}

MergeLines read_merge_lines(const std::string& path) {
  std::istringstream lines(read_tokenizer_file(path, "--merge-file"));
  MergeLines merges;
  std::string line;
  for (int64_t number = 1; std::getline(lines, line); ++number) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (line.empty() || (number == 1 && line.rfind("#version", 0) == 0)) continue;
    const std::string location = fmt::format("--merge-file {}:{}", path, number);
    auto [left, right] = halves(line);
    if (left.empty())
      throw std::runtime_error(fmt::format(
          "{}: expected two tokens with a space between them, found \"{}\"", location, line));
    merges.push_back({std::move(left), std::move(right), location});
  }
  if (merges.empty())
    throw std::runtime_error(fmt::format("--merge-file '{}' holds no merges", path));
  return merges;
}

}  // namespace tally::train
