#include "engine/results/read/open_folder.h"

#include <fcntl.h>
#include <unistd.h>

#include "engine/base/text.h"

namespace tally {

OpenFolder::OpenFolder(std::string_view path)
    : path_(std::string(path) + "/"),
      folder_(::open(path_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)) {}

OpenFolder::~OpenFolder() {
  if (folder_ >= 0) ::close(folder_);
}

int OpenFolder::open(const std::string& path, int flags) const {
  // A second slash would make the rest a path of its own.
  if (folder_ >= 0 && starts_with(path, path_) && path[path_.size()] != '/') {
    const int file = ::openat(folder_, path.c_str() + path_.size(), flags);
    if (file >= 0) return file;
  }
  return ::open(path.c_str(), flags);  // which tells why, or finds a folder that was replaced
}

}  // namespace tally
