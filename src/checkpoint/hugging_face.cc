#include "src/checkpoint/hugging_face.h"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "src/checkpoint/model_config_file.h"
#include "src/checkpoint/save_folder.h"
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

fs::path target_of(const std::string& directory) {
  const fs::path place = fs::absolute(directory).lexically_normal();
  return place.has_filename() ? place : place.parent_path();
}

// Where the files are written before they are put in their place: in a folder that is there, for
// the one above it may be closed to us; beside one that is yet to be.
fs::path folder_to_write_in(const fs::path& target) {
  return fs::exists(target) ? target : target.parent_path();
}

// A folder that goes with what is still in it.
struct Unfinished {
  explicit Unfinished(fs::path folder) : path(std::move(folder)) {
    fs::remove_all(path);
    fs::create_directory(path);
  }
  ~Unfinished() {
    std::error_code error;
    fs::remove_all(path, error);
  }
  Unfinished(const Unfinished&) = delete;
  Unfinished& operator=(const Unfinished&) = delete;
  const fs::path path;
};

std::runtime_error unwritable(const std::string& directory, const fs::filesystem_error& error) {
  return std::runtime_error(fmt::format("the model cannot be written to '{}': '{}': {}", directory,
                                        error.path1().string(), error.code().message()));
}

}  // namespace

void check_hugging_face_target(const std::string& directory) {
  try {
    const fs::path target = target_of(directory);
    if (fs::exists(target)) {
      if (!fs::is_directory(target))
        throw std::runtime_error(fmt::format("'{}' is there and is no folder", directory));
      if (!fs::is_empty(target) && !fs::exists(target / "config.json"))
        throw std::runtime_error(
            fmt::format("'{}' holds files and no config.json: it is no model's folder, and a model "
                        "is not written among other files",
                        directory));
    }
    // Rights say little (root has all, even in /proc): what is written says it.
    const MadeFolders made(target.parent_path());
    const Unfinished probe(folder_to_write_in(target) / temporary_name(target.filename()));
  } catch (const fs::filesystem_error& error) {
    throw unwritable(directory, error);
  }
}

void save_hugging_face(const std::string& directory, const ModelConfig& config,
                       const DataConfig& data, const std::string& source,
                       const ParameterState& parameters, Stream& stream) {
  try {
    const fs::path target = target_of(directory);
    fs::create_directories(target.parent_path());
    const Unfinished unfinished(folder_to_write_in(target) / temporary_name(target.filename()));
    const fs::path& made = unfinished.path;
    write_text(made / "config.json", model_config_json(config, parameters.weights.dtype));
    write_tokenizer(made, config, data, source);
    save_model_weights((made / "model.safetensors").string(), config, parameters, stream);
    if (fs::exists(target)) {
      for (const fs::directory_entry& entry : fs::directory_iterator(made)) {
        if (entry.path().filename() != "model.safetensors")
          rename_durably(entry.path().string(), (target / entry.path().filename()).string());
      }
      rename_durably((made / "model.safetensors").string(),
                     (target / "model.safetensors").string());
      // An older model's shards would be read by nobody, and confuse everybody.
      fs::remove(target / "model.safetensors.index.json");
    } else {
      rename_durably(made.string(), target.string());
    }
  } catch (const fs::filesystem_error& error) {
    throw unwritable(directory, error);
  }
}

}  // namespace tally::train
