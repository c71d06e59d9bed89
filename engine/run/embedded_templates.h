// The shipped templates within a static program, which may be copied somewhere without its other
// files.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/base/status.h"

namespace tally {

struct EmbeddedFile {
  const char* path;
  std::string_view bytes;
};
// All files of templates/. Made by the build (cmake/EmbedFiles.cmake).
std::vector<EmbeddedFile> embedded_files();

// Writes the files to a folder of the user's cache that is named after their content, unless it
// exists. The folder appears whole. *folder: where they are.
Status unpack_templates(std::string* folder);

}  // namespace tally
