#include "engine/evidence/scratch.h"

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "engine/base/files.h"

namespace tally {

Status Scratch::make() {
  const char* temporary = std::getenv("TMPDIR");
  std::string path = std::string(temporary != nullptr && *temporary != '\0' ? temporary : "/tmp") +
                     "/tally-evidence-XXXXXX";
  if (::mkdtemp(path.data()) == nullptr)
    return file_error(path, "cannot make a temporary folder", errno);
  path_ = path;
  return Status::ok();
}

Scratch::~Scratch() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

}  // namespace tally
