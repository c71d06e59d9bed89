#include "src/checkpoint/side_files.h"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "src/data/text/mapped_file.h"
#include "src/data/tokenizers/tokenizer.h"
#include "src/data/tokenizers/tokenizer_settings.h"

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

// The source's files do not describe a vocabulary that is not the source's. The files beside the
// vocabulary do, unless they describe a tokenizer.json that is not taken.
void take_vocabulary(const std::string& vocab_file, const std::string& source, SideFiles* side) {
  if (lies_in(vocab_file, source)) return;
  for (const char* name :
       {"vocab.txt", "vocab.json", "merges.txt", "tokenizer.json", "tokenizer.model",
        "added_tokens.json", "tokenizer_config.json", "special_tokens_map.json"})
    side->files.erase(name);
  const fs::path folder = fs::path(vocab_file).parent_path();
  if (!is_tokenizer_json(vocab_file) && fs::exists(folder / "tokenizer.json")) return;
  for (const char* name : {"tokenizer_config.json", "special_tokens_map.json"})
    if (fs::exists(folder / name)) side->files[name] = bytes_of(folder / name);
}

// The settings with which transformers takes a tokenizer.json as it is.
std::string whole_config(const ModelConfig& model, const std::string& end) {
  const nlohmann::ordered_json json = {{"tokenizer_class", "PreTrainedTokenizerFast"},
                                       {"model_max_length", model.max_positions},
                                       {"eos_token", end}};
  return json.dump(2) + "\n";
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

// Settings that tokenizer.json alone can state: transformers' BertTokenizer has none for them.
bool needs_tokenizer_json(const WordSettings& settings) {
  return !settings.rules.clean_text || settings.longest_word != WordSettings{}.longest_word;
}

// The same of BERT's. `known`: the text of the file that there is, whose other settings stay;
// empty: there is none. `whole`: a tokenizer.json lies beside it, and its class takes all of that
// file.
std::string wordpiece_config(const ModelConfig& model, const BertWordRules& rules, bool whole,
                             const std::string& known) {
  nlohmann::ordered_json json = {
      {"tokenizer_class", whole ? "PreTrainedTokenizerFast" : "BertTokenizer"},
      {"model_max_length", model.max_positions},
      {"pad_token", "[PAD]"},
      {"unk_token", "[UNK]"},
      {"cls_token", "[CLS]"},
      {"sep_token", "[SEP]"},
      {"mask_token", "[MASK]"}};
  if (!known.empty())
    json = nlohmann::ordered_json::parse(known);  // an object: its settings have been read
  json["do_lower_case"] = rules.lower_case;
  json["strip_accents"] = rules.strip_accents;
  json["tokenize_chinese_chars"] = rules.space_cjk;
  return json.dump(2) + "\n";
}

}  // namespace

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
    take_vocabulary(data.vocab_file, source, &side);
    side.files[is_tokenizer_json(data.vocab_file) ? "tokenizer.json" : "vocab.txt"] =
        bytes_of(data.vocab_file);
    const fs::path folder = fs::path(data.vocab_file).parent_path();
    const WordSettings settings =
        word_settings(folder.string(), data.tokenizer == "BertWordPieceLowerCase");
    if (needs_tokenizer_json(settings))
      side.files["tokenizer.json"] = bytes_of(folder / "tokenizer.json");
    const bool whole = is_tokenizer_json(data.vocab_file) || needs_tokenizer_json(settings);
    std::string& config = side.files["tokenizer_config.json"];
    config = wordpiece_config(model, settings.rules, whole, config);
    return side;
  }
  if (data.tokenizer == "HuggingFaceTokenizer" && !data.vocab_file.empty()) {
    if (lies_in(data.vocab_file, source)) return side;
    const auto tokenizer = make_json_tokenizer(data.vocab_file);
    side.end_of_text = tokenizer->eod();
    take_vocabulary(data.vocab_file, source, &side);
    side.files["tokenizer.json"] = bytes_of(data.vocab_file);
    side.files.emplace("tokenizer_config.json",
                       whole_config(model, tokenizer->decode({tokenizer->eod()})));
    return side;
  }
  if (data.tokenizer != "GPT2BPETokenizer" || data.vocab_file.empty() || data.merge_file.empty())
    return side;
  side.end_of_text = make_gpt2_tokenizer(data.vocab_file, data.merge_file)->eod();
  take_vocabulary(data.vocab_file, source, &side);
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
