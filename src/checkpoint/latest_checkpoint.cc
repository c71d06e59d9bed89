#include "src/checkpoint/latest_checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <stdexcept>

#include "src/checkpoint/checkpoint.h"
#include "src/checkpoint/state_file.h"
#include "src/checkpoint/stored_files.h"
#include "src/data/text/mapped_file.h"

namespace tally::train {

namespace fs = std::filesystem;

namespace {

// A whole number in digits alone.
std::optional<int64_t> number_of(const std::string& text) {
  int64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (text.empty() || text.front() == '-' || error != std::errc() || stop != end)
    return std::nullopt;
  return number;
}

}  // namespace

std::string directory_name(int64_t iteration) {
  return fmt::format("iter_{:07d}", iteration);
}

std::optional<int64_t> iteration_of(const std::string& directory_name) {
  constexpr const char* kBegin = "iter_";
  if (directory_name.rfind(kBegin, 0) != 0) return std::nullopt;
  return number_of(directory_name.substr(std::strlen(kBegin)));
}

fs::path normal_path(const fs::path& folder) {
  const fs::path path = fs::absolute(folder).lexically_normal();
  return path.has_filename() ? path : path.parent_path();
}

void check_folder(const std::string& directory) {
  check_small_files(directory);
  const std::string path = (fs::path(directory) / state_file).string();
  const std::optional<int64_t> named = iteration_of(normal_path(directory).filename().string());
  if (!named || !fs::exists(path)) return;
  if (const int64_t iteration = read_state(path).iteration; iteration != *named)
    throw std::runtime_error(
        fmt::format("'{}' is of iteration {}, and its folder's name is of iteration {}: give the "
                    "folder its own name ({}), or load another checkpoint",
                    path, iteration, *named, directory_name(iteration)));
}

namespace {

// The highest iteration among the iter_ folders of `root`, -1 without any.
int64_t newest_folder(const fs::path& root) {
  int64_t newest = -1;
  if (!fs::is_directory(root)) return newest;
  for (const fs::directory_entry& entry : fs::directory_iterator(root))
    if (const auto iteration = iteration_of(entry.path().filename().string());
        iteration && entry.is_directory())
      newest = std::max(newest, *iteration);
  return newest;
}

// A folder without the text file: empty, a checkpoint itself, or a mistake.
std::optional<std::string> without_text(const fs::path& root) {
  if (!fs::exists(root)) return std::nullopt;
  if (!fs::is_directory(root))
    throw std::runtime_error(
        fmt::format("'{}' is a file: give the folder that --save named", root.string()));
  if (fs::exists(root / state_file)) return root.string();
  if (const int64_t newest = newest_folder(root); newest >= 0)
    throw std::runtime_error(
        fmt::format("'{}' holds checkpoints and no '{}': write the number of the iter_ folder to "
                    "resume from into that file ({} is the newest), or give the folder itself",
                    root.string(), latest_file, newest));
  for (const char* name : {"config.json", "model.safetensors", "model.safetensors.index.json"})
    if (fs::exists(root / name))
      throw std::runtime_error(
          fmt::format("'{}' is not a folder of checkpoints but a model in Hugging Face's format: "
                      "give it as --load-hf",
                      root.string()));
  return std::nullopt;
}

}  // namespace

void check_goes_on(const std::string& root, const std::optional<std::string>& resumed) {
  const int64_t newest = newest_folder(root);
  if (newest < 0 && !fs::exists(fs::path(root) / latest_file)) return;
  if (resumed) {
    if (fs::equivalent(normal_path(*resumed).parent_path(), root)) return;
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
  std::string words(file.data() == nullptr ? "" : file.data(), file.size());
  while (!words.empty() && std::strchr(" \r\n", words.back()) != nullptr) words.pop_back();
  const std::optional<int64_t> number = number_of(words);
  if (!number) {
    throw std::runtime_error(
        fmt::format("'{}' does not hold the number of an iteration: write the number of the iter_ "
                    "directory to resume from into it",
                    text.string()));
  }
  const int64_t iteration = *number;
  const fs::path folder = fs::path(root) / directory_name(iteration);
  if (fs::exists(folder)) return folder.string();
  const fs::path old = fs::path(root) / fmt::format(".{}.old", directory_name(iteration));
  if (fs::exists(old))
    return old.string();  // a save of the same iteration was killed between two renames
  throw std::runtime_error(fmt::format(
      "'{}' names iteration {}, and '{}' does not exist: write the number of an iter_ directory "
      "that exists into it",
      text.string(), iteration, folder.string()));
}

std::string newer_checkpoint(const std::string& root, const std::string& latest) {
  const auto named = iteration_of(normal_path(latest).filename().string());
  const int64_t newest = newest_folder(root);
  return named && newest > *named ? (fs::path(root) / directory_name(newest)).string()
                                  : std::string();
}

}  // namespace tally::train
