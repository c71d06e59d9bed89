#include "engine/run/embedded_templates.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "engine/base/accounts.h"
#include "engine/base/digest.h"
#include "engine/base/host.h"

namespace tally {
namespace {

namespace fs = std::filesystem;

// $XDG_CACHE_HOME, or ~/.cache.
fs::path cache_folder() {
  if (const char* given = std::getenv("XDG_CACHE_HOME"); given != nullptr && *given == '/')
    return given;
  const char* home = std::getenv("HOME");
  const std::string folder = home != nullptr && *home != '\0' ? home : home_folder("");
  return fs::path(folder.empty() ? "/" : folder) / ".cache";
}

std::string digest_of(const std::vector<EmbeddedFile>& files) {
  Digest digest;
  for (const EmbeddedFile& file : files) {
    digest.add(file.path);
    digest.add(file.bytes);
  }
  return digest.hex();
}

bool write_file(const fs::path& path, std::string_view bytes) {
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  std::ofstream out(path, std::ios::binary);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  out.close();
  if (bytes.substr(0, 2) == "#!")
    fs::permissions(path, fs::perms::owner_exec, fs::perm_options::add, error);
  return static_cast<bool>(out);
}

}  // namespace

Status unpack_templates(std::string* folder) {
  const std::vector<EmbeddedFile> files = embedded_files();
  const fs::path whole = cache_folder() / "tally" / ("templates-" + digest_of(files));
  *folder = whole;
  std::error_code error;
  if (fs::is_directory(whole, error)) return Status::ok();
  const fs::path part = name_beside(whole);
  for (const EmbeddedFile& file : files) {
    if (!write_file(part / file.path, file.bytes)) {
      fs::remove_all(part, error);
      return Status::error(fmt::format(
          "the job templates that this program carries cannot be written to '{}': set "
          "XDG_CACHE_HOME to a folder that can be written, or TALLY_TEMPLATES to a copy "
          "of templates/",
          whole.string()));
    }
  }
  fs::rename(part, whole, error);  // fails where another process was faster
  std::error_code ignored;
  fs::remove_all(part, ignored);
  if (fs::is_directory(whole, ignored)) return Status::ok();
  return Status::error(fmt::format("'{}': {}", whole.string(), error.message()));
}

}  // namespace tally
