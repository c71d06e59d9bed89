#include "src/checkpoint/hugging_face.h"

#include <fmt/format.h>

#include <filesystem>
#include <functional>
#include <optional>
#include <stdexcept>
#include <vector>

#include "src/checkpoint/latest_checkpoint.h"
#include "src/checkpoint/model_config_file.h"
#include "src/checkpoint/save_folder.h"
#include "src/checkpoint/state_file.h"
#include "src/data/text/output_file.h"

namespace tally::train {
namespace {

namespace fs = std::filesystem;

void write_text(const fs::path& path, const std::string& text) {
  OutputFile file(path.string());
  file.append(text.data(), text.size());
  file.sync_and_keep();
}

// The folder in which the files are written before they are renamed: inside the folder if it
// exists, because its parent may not be writable; next to it if it does not.
fs::path folder_to_write_in(const fs::path& target) {
  return fs::exists(target) ? target : target.parent_path();
}

std::runtime_error unwritable(const std::string& directory, const fs::filesystem_error& error) {
  return std::runtime_error(fmt::format("the model cannot be written to '{}': '{}': {}", directory,
                                        error.path1().string(), error.code().message()));
}

// An older model's shards are not read, but they would mislead users.
void remove_shards(const fs::path& folder) {
  std::vector<fs::path> shards = {folder / "model.safetensors.index.json"};
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (name.rfind("model-", 0) == 0 && entry.path().extension() == ".safetensors" &&
        name.find("-of-") != std::string::npos)
      shards.push_back(entry.path());
  }
  for (const fs::path& shard : shards) fs::remove(shard);
}

// Throws where the existing folder holds something that this run must not replace.
void check_contents(const fs::path& target, const std::string& directory, bool goes_on) {
  const auto refuse = [&](const std::string& why) {
    throw std::runtime_error(fmt::format("'{}' {}", directory, why));
  };
  if (!fs::is_directory(target)) refuse("exists but is not a directory");
  if (fs::is_empty(target)) return;
  if (fs::exists(target / state_file)) refuse("is a checkpoint of --save: name another folder");
  if (!fs::exists(target / "config.json"))
    refuse(
        "holds files but no config.json: it is not a model's folder, and a model is not written "
        "among other files");
  if (!goes_on)
    refuse(
        "already holds a model, which only a run that resumes its training (--load) replaces: "
        "remove it or name another folder");
  read_model_config(target.string());  // throws where it is another kind of model
}

// Gives the finished files their names; the weights get theirs last.
void put_in_place(const fs::path& made, const fs::path& target) {
  if (!fs::exists(target)) return rename_durably(made.string(), target.string());
  for (const fs::directory_entry& entry : fs::directory_iterator(made)) {
    if (entry.path().filename() != "model.safetensors")
      rename_durably(entry.path().string(), (target / entry.path().filename()).string());
  }
  rename_durably((made / "model.safetensors").string(), (target / "model.safetensors").string());
  remove_shards(target);
}

}  // namespace

void check_hugging_face_target(const std::string& directory, bool goes_on) {
  try {
    const fs::path target = normal_path(directory);
    if (fs::exists(target)) check_contents(target, directory, goes_on);
    // Permission bits are not enough (root has all, even in /proc), so a file is written to find
    // out.
    const MadeFolders made(target.parent_path());
    const Unfinished probe(folder_to_write_in(target) / temporary_name(target.filename()));
  } catch (const fs::filesystem_error& error) {
    throw unwritable(directory, error);
  }
}

void save_hugging_face(const std::string& directory, const ModelConfig& config,
                       const SideFiles& side, const ParameterState& parameters, Stream& stream,
                       const SaveGroup& group) {
  const fs::path target = normal_path(directory);
  const auto together = [&](const std::function<std::string()>& work) {
    return work_together(group, [&] {
      try {
        return work();
      } catch (const fs::filesystem_error& error) {
        throw unwritable(directory, error);
      }
    });
  };
  std::optional<Unfinished> unfinished;  // only on the first process
  const std::vector<std::string> names = together([&]() -> std::string {
    if (!group.first()) return "";
    fs::create_directories(target.parent_path());
    unfinished.emplace(folder_to_write_in(target) / temporary_name(target.filename()));
    const fs::path& made = unfinished->path;
    write_text(made / "config.json", model_config_json(config, parameters.weights.dtype, side));
    for (const auto& [name, bytes] : side.files) write_text(made / name, bytes);
    if (group.divided()) make_model_file((made / "model.safetensors").string(), parameters);
    return made.filename();
  });
  const fs::path made = folder_to_write_in(target) / names.front();
  together([&] {
    const std::string weights = (made / "model.safetensors").string();
    if (!group.divided()) {
      save_model_weights(weights, parameters, stream);
    } else if (group.writes_model()) {
      write_model_part(weights, parameters, stream);
    }
    return "";
  });
  together([&] {
    if (group.first()) put_in_place(made, target);
    return "";
  });
}

}  // namespace tally::train
