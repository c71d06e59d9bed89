#include "src/checkpoint/hugging_face.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "src/checkpoint/model_config_file.h"
#include "src/data/mapped_file.h"
#include "src/data/output_file.h"

namespace tally::train {
namespace {

namespace fs = std::filesystem;

void write_text(const fs::path& path, const std::string& text) {
  OutputFile file(path.string());
  file.append(text.data(), text.size());
  file.sync_and_keep();
}

void copy_text(const fs::path& from, const fs::path& to) {
  const MappedFile file(from.string());
  OutputFile out(to.string());
  out.append(file.data(), file.size());
  out.sync_and_keep();
}

// What transformers' GPT-2 tokenizer is to be made with.
std::string tokenizer_config(const ModelConfig& config) {
  const char* end = "<|endoftext|>";
  const nlohmann::ordered_json json = {{"tokenizer_class", "GPT2Tokenizer"},
                                       {"add_prefix_space", false},
                                       {"model_max_length", config.max_positions},
                                       {"bos_token", end},
                                       {"eos_token", end},
                                       {"unk_token", end}};
  return json.dump(2) + "\n";
}

void write_tokenizer(const fs::path& folder, const ModelConfig& config, const DataConfig& data,
                     const std::string& source) {
  for (const char* name : {"tokenizer.json", "special_tokens_map.json", "tokenizer_config.json",
                           "generation_config.json"}) {
    const fs::path from = fs::path(source) / name;
    if (!source.empty() && fs::exists(from)) copy_text(from, folder / name);
  }
  if (data.vocab_file.empty() || data.merge_file.empty()) return;
  copy_text(data.vocab_file, folder / "vocab.json");
  copy_text(data.merge_file, folder / "merges.txt");
  if (!fs::exists(folder / "tokenizer_config.json"))
    write_text(folder / "tokenizer_config.json", tokenizer_config(config));
}

}  // namespace

void check_hugging_face_target(const std::string& directory) {
  const fs::path path(directory);
  std::error_code error;
  if (!fs::exists(path, error)) return;
  if (!fs::is_directory(path, error))
    throw std::runtime_error(fmt::format("'{}' is there and is no folder", directory));
  if (!fs::is_empty(path, error) && !fs::exists(path / "config.json", error))
    throw std::runtime_error(
        fmt::format("'{}' holds files and no config.json: it is no model's folder, and a model is "
                    "not written among other files",
                    directory));
}

void save_hugging_face(const std::string& directory, const ModelConfig& config,
                       const DataConfig& data, const std::string& source,
                       const ParameterState& parameters, Stream& stream) {
  try {
    const fs::path place = fs::absolute(directory).lexically_normal();
    const fs::path target = place.has_filename() ? place : place.parent_path();
    const fs::path made =
        target.parent_path() / fmt::format(".{}.{}.tmp", target.filename().string(), getpid());
    fs::create_directories(target.parent_path());
    fs::remove_all(made);
    fs::create_directory(made);
    write_text(made / "config.json", model_config_json(config, parameters.weights.dtype));
    write_tokenizer(made, config, data, source);
    save_model_weights((made / "model.safetensors").string(), config, parameters, stream);
    if (fs::exists(target) && !fs::is_empty(target)) {
      for (const fs::directory_entry& entry : fs::directory_iterator(made)) {
        if (entry.path().filename() != "model.safetensors")
          rename_durably(entry.path().string(), (target / entry.path().filename()).string());
      }
      rename_durably((made / "model.safetensors").string(),
                     (target / "model.safetensors").string());
      fs::remove_all(made);
      // An older model's shards would be read by nobody, and confuse everybody.
      fs::remove(target / "model.safetensors.index.json");
    } else {
      rename_durably(made.string(), target.string());
    }
  } catch (const fs::filesystem_error& error) {
    throw std::runtime_error(
        fmt::format("the model cannot be written to '{}': {}", directory, error.code().message()));
  }
}

}  // namespace tally::train
