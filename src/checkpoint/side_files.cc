#include "src/checkpoint/side_files.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "src/data/mapped_file.h"
#include "src/data/tokenizer.h"

namespace tally::train {
namespace {

namespace fs = std::filesystem;

std::string bytes_of(const fs::path& path) {
  const MappedFile file(path.string());
  return file.size() == 0 ? std::string() : std::string(file.data(), file.size());
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

// The same of BERT's.
std::string wordpiece_config(const ModelConfig& model, const std::string& tokenizer) {
  const nlohmann::ordered_json json = {{"tokenizer_class", "BertTokenizer"},
                                       {"do_lower_case", tokenizer == "BertWordPieceLowerCase"},
                                       {"model_max_length", model.max_positions}};
  return json.dump(2) + "\n";
}

}  // namespace

SideFiles read_side_files(const ModelConfig& model, const DataConfig& data,
                          const std::string& source) {
  SideFiles side;
  if (!source.empty()) {
    for (const char* name : {"tokenizer.json", "special_tokens_map.json", "tokenizer_config.json",
                             "generation_config.json", "vocab.txt"}) {
      const fs::path from = fs::path(source) / name;
      if (fs::exists(from)) side.files[name] = bytes_of(from);
    }
    side.config = bytes_of(fs::path(source) / "config.json");
  }
  if (is_wordpiece(data.tokenizer) && !data.vocab_file.empty()) {
    const bool json = is_tokenizer_json(data.vocab_file);
    side.files[json ? "tokenizer.json" : "vocab.txt"] = bytes_of(data.vocab_file);
    side.files.emplace("tokenizer_config.json", wordpiece_config(model, data.tokenizer));
    return side;
  }
  if (data.tokenizer != "GPT2BPETokenizer" || data.vocab_file.empty() || data.merge_file.empty())
    return side;
  side.end_of_text = make_gpt2_tokenizer(data.vocab_file, data.merge_file)->eod();
  if (data.vocab_file == data.merge_file) {
    side.files["tokenizer.json"] = bytes_of(data.vocab_file);
  } else {
    // For another tokenizer than the source's: transformers would take the source's.
    if (fs::path(data.vocab_file).parent_path() != fs::path(source))
      side.files.erase("tokenizer.json");
    side.files["vocab.json"] = bytes_of(data.vocab_file);
    side.files["merges.txt"] = bytes_of(data.merge_file);
  }
  side.files.emplace("tokenizer_config.json", tokenizer_config(model));
  return side;
}

}  // namespace tally::train
