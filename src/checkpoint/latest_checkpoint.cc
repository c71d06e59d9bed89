#include "src/checkpoint/latest_checkpoint.h"

#include <fmt/format.h>

#include <filesystem>
#include <stdexcept>

#include "src/checkpoint/checkpoint.h"
#include "src/data/mapped_file.h"

namespace tally::train {

namespace fs = std::filesystem;

std::string directory_name(int64_t iteration) {
  return fmt::format("iter_{:07d}", iteration);
}

std::optional<std::string> latest_checkpoint(const std::string& root) {
  const fs::path text = fs::path(root) / latest_file;
  if (!fs::exists(text)) return std::nullopt;
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
