#include "src/checkpoint/side_files.h"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "src/data/text/json_fault.h"
#include "src/data/text/mapped_file.h"
#include "src/data/tokenizers/tokenizer.h"

namespace tally::train {
namespace {

namespace fs = std::filesystem;

std::string bytes_of(const fs::path& path) {
  const MappedFile file(path.string());
  return file.size() == 0 ? std::string() : std::string(file.data(), file.size());
}

bool lies_in(const std::string& file, const std::string& folder) {
  return !folder.empty() && fs::equivalent(fs::absolute(file).parent_path(), folder);
}

// The run has another vocabulary than the source's, which transformers would take.
void remove_other_tokens(const DataConfig& data, const std::string& source, SideFiles* side) {
  if (lies_in(data.vocab_file, source)) return;
  for (const char* name : {"vocab.txt", "vocab.json", "merges.txt", "tokenizer.json",
                           "tokenizer.model", "added_tokens.json"})
    side->files.erase(name);
}

// The settings with which transformers makes GPT-2's tokenizer.
std::string tokenizer_config(const ModelConfig& model) {
  const char* end = "<|endoftext|>";
  const nlohmann::ordered_json json = {{"tokenizer_class", "GPT2Tokenizer"},
                                       {"add_prefix_space", false},
                                       {"model_max_length", model.max_positions},
                                       {"bos_token", end},
                                       {"eos_token", end},
                                       {"unk_token", end}};
  return json.dump(2) + "\n";
}

nlohmann::ordered_json parse_object(const fs::path& path, const std::string& text) {
  try {
    auto json = nlohmann::ordered_json::parse(text);
    if (json.is_object()) return json;
  } catch (const nlohmann::ordered_json::exception& error) {
    throw std::runtime_error(
        fmt::format("'{}' is not valid JSON: {}", path.string(), json_fault(error)));
  }
  throw std::runtime_error(fmt::format("'{}' is not a JSON object", path.string()));
}

// The same of BERT's. `known`: the text of the source's file, whose other settings stay; empty:
// there is none.
std::string wordpiece_config(const ModelConfig& model, const std::string& tokenizer,
                             const fs::path& path, const std::string& known) {
  nlohmann::ordered_json json =
      known.empty() ? nlohmann::ordered_json{{"tokenizer_class", "BertTokenizer"},
                                             {"model_max_length", model.max_positions}}
                    : parse_object(path, known);
  json["do_lower_case"] = tokenizer == "BertWordPieceLowerCase";
  return json.dump(2) + "\n";
}

// The value of a true-or-false setting; nothing where it is missing or null.
std::optional<bool> setting(const fs::path& path, const nlohmann::ordered_json& json,
                            const char* key) {
  if (!json.is_object() || !json.contains(key) || json[key].is_null()) return std::nullopt;
  if (json[key].is_boolean()) return json[key].get<bool>();
  throw std::runtime_error(fmt::format("'{}' has {} for \"{}\", which is neither true nor false",
                                       path.string(), json[key].dump(), key));
}

}  // namespace

std::optional<bool> reads_lower_case(const std::string& folder) {
  const fs::path config = fs::path(folder) / "tokenizer_config.json";
  const fs::path whole = fs::path(folder) / "tokenizer.json";
  if (fs::exists(config)) {
    const auto found = setting(config, parse_object(config, bytes_of(config)), "do_lower_case");
    if (found) return found;
  }
  if (!fs::exists(whole)) return std::nullopt;
  const auto json = parse_object(whole, bytes_of(whole));
  return json.contains("normalizer") ? setting(whole, json["normalizer"], "lowercase")
                                     : std::nullopt;
}

SideFiles read_side_files(const ModelConfig& model, const DataConfig& data,
                          const std::string& source) {
  SideFiles side;
  if (!source.empty()) {
    const auto take = [&](const char* name) {
      const fs::path from = fs::path(source) / name;
      if (fs::exists(from)) side.files[name] = bytes_of(from);
    };
    for (const char* name : tokenizer_files) take(name);
    take("generation_config.json");
    side.config = bytes_of(fs::path(source) / "config.json");
  }
  if (is_wordpiece(data.tokenizer) && !data.vocab_file.empty()) {
    const bool json = is_tokenizer_json(data.vocab_file);
    remove_other_tokens(data, source, &side);
    side.files[json ? "tokenizer.json" : "vocab.txt"] = bytes_of(data.vocab_file);
    std::string& config = side.files["tokenizer_config.json"];
    config =
        wordpiece_config(model, data.tokenizer, fs::path(source) / "tokenizer_config.json", config);
    return side;
  }
  if (data.tokenizer != "GPT2BPETokenizer" || data.vocab_file.empty() || data.merge_file.empty())
    return side;
  side.end_of_text = make_gpt2_tokenizer(data.vocab_file, data.merge_file)->eod();
  remove_other_tokens(data, source, &side);
  if (data.vocab_file == data.merge_file) {
    side.files["tokenizer.json"] = bytes_of(data.vocab_file);
  } else {
    side.files["vocab.json"] = bytes_of(data.vocab_file);
    side.files["merges.txt"] = bytes_of(data.merge_file);
  }
  side.files.emplace("tokenizer_config.json", tokenizer_config(model));
  return side;
}

}  // namespace tally::train
