#include "src/checkpoint/latest_checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <stdexcept>

#include "src/checkpoint/checkpoint.h"
#include "src/data/mapped_file.h"

namespace tally::train {

namespace fs = std::filesystem;

std::string directory_name(int64_t iteration) {
  return fmt::format("iter_{:07d}", iteration);
}

namespace {

// The highest iteration among the iter_ folders of `root`, -1 without any.
int64_t newest_folder(const fs::path& root) {
  int64_t newest = -1;
  if (!fs::is_directory(root)) return newest;
  for (const fs::directory_entry& entry : fs::directory_iterator(root)) {
    const std::string name = entry.path().filename().string();
    const char* number = name.c_str() + std::strlen("iter_");
    if (name.rfind("iter_", 0) != 0 || *number == '\0' || !entry.is_directory()) continue;
    char* end = nullptr;
    const int64_t iteration = std::strtoll(number, &end, 10);
    if (*end == '\0') newest = std::max(newest, iteration);
  }
  return newest;
}

// A folder without the text file: empty, a checkpoint itself, or a mistake.
std::optional<std::string> without_text(const fs::path& root) {
  if (!fs::exists(root)) return std::nullopt;
  if (!fs::is_directory(root))
    throw std::runtime_error(
        fmt::format("'{}' is a file: give the folder that --save named", root.string()));
  if (fs::exists(root / "state.json")) return root.string();
  if (const int64_t newest = newest_folder(root); newest >= 0)
    throw std::runtime_error(
        fmt::format("'{}' holds checkpoints and no '{}': write the number of the iter_ folder to "
                    "resume from into that file ({} is the newest), or give the folder itself",
                    root.string(), latest_file, newest));
  for (const char* name : {"config.json", "model.safetensors", "model.safetensors.index.json"})
    if (fs::exists(root / name))
      throw std::runtime_error(
          fmt::format("'{}' is not a folder of checkpoints but a model in Hugging Face's layout: "
                      "give it as --load-hf",
                      root.string()));
  return std::nullopt;
}

}  // namespace

void check_goes_on(const std::string& root, const std::optional<std::string>& resumed) {
  const int64_t newest = newest_folder(root);
  if (newest < 0 && !fs::exists(fs::path(root) / latest_file)) return;
  if (resumed) {
    const fs::path from = fs::absolute(*resumed + "/.").lexically_normal().parent_path();
    if (fs::equivalent(from.parent_path(), root)) return;
  }
  throw std::runtime_error(fmt::format(
      "'{}' holds checkpoints{}, and this run does not resume from them: give --load {} to "
      "resume, or another folder",
      root, newest < 0 ? "" : fmt::format(" (the newest of iteration {})", newest), root));
}

std::optional<std::string> latest_checkpoint(const std::string& root) {
  const fs::path text = fs::path(root) / latest_file;
  if (!fs::exists(text)) return without_text(root);
  const MappedFile file(text.string());
  const std::string words(file.data() == nullptr ? "" : file.data(), file.size());
  int64_t iteration = -1;
  size_t used = 0;
  try {
    iteration = std::stoll(words, &used);
  } catch (const std::exception&) {
    used = 0;
  }
  if (used == 0 || iteration < 0 || words.find_first_not_of(" \r\n", used) != std::string::npos) {
    throw std::runtime_error(
        fmt::format("'{}' does not hold the number of an iteration: write the number of the iter_ "
                    "directory to resume from into it",
                    text.string()));
  }
  const fs::path place = fs::path(root) / directory_name(iteration);
  if (fs::exists(place)) return place.string();
  const fs::path old = fs::path(root) / fmt::format(".{}.old", directory_name(iteration));
  if (fs::exists(old))
    return old.string();  // a save of the same iteration was killed between two renames
  throw std::runtime_error(fmt::format(
      "'{}' names iteration {}, and there is no '{}': write the number of an iter_ directory "
      "that exists into it",
      text.string(), iteration, place.string()));
}

}  // namespace tally::train
