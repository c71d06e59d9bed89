#include "src/train/step/profile_files.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "src/data/text/output_file.h"

namespace tally::train {
namespace {

namespace fs = std::filesystem;

// Whether there is an earlier file of this kind.
bool replaces(const fs::path& path, const std::string& beginning) {
  std::error_code error;
  if (!destination_of(path.string()).replaced || !fs::exists(path, error) ||
      fs::file_size(path, error) == 0)
    return false;
  std::string found(beginning.size(), ' ');
  std::ifstream file(path, std::ios::binary);
  file.read(found.data(), static_cast<std::streamsize>(found.size()));
  if (file && found == beginning) return true;
  throw std::runtime_error(
      fmt::format("'{}' exists but is not a file of a profile: it would be replaced; remove it or "
                  "name another folder",
                  path.string()));
}

// The user may have a file NAME.tmp.
std::string temporary(const Destination& to) {
  return fmt::format("{}.{}.tmp", to.path, getpid());
}

}  // namespace

void prepare_profile_folder(const std::string& folder, const std::vector<ProfileFile>& files,
                            const std::function<void(const std::string&)>& notice) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (!fs::is_directory(folder))
    throw std::runtime_error(
        fmt::format("'{}' exists but is not a directory, or cannot be made", folder));
  bool earlier = false;
  for (const ProfileFile& file : files)
    earlier = replaces(fs::path(folder) / file.name, file.beginning) || earlier;
  // Throws where the folder cannot be written.
  for (const ProfileFile& file : files) {
    const Destination to = destination_of(folder + "/" + file.name);
    if (!to.replaced) continue;
    const OutputFile attempt(temporary(to), true);
  }
  if (earlier)
    notice(fmt::format("--profile-dir: the earlier profile in '{}' will be replaced", folder));
}

void write_profile_file(const std::string& folder, const std::string& name,
                        const std::string& text) {
  const Destination to = destination_of(folder + "/" + name);
  if (!to.replaced) return write_into(to.path, text);
  OutputFile file(temporary(to), true);
  file.append(text.data(), text.size());
  file.sync_and_keep();
  rename_durably(file.path(), to.path);
}

}  // namespace tally::train
