// The long form of a workflow in the short form.
#pragma once

#include <string>

#include "engine/base/diagnostics.h"
#include "engine/read/yaml_tree.h"

namespace tally {

// The long form of `top`, for which is_short_form() holds and whose includes are resolved. `file` is
// its file's path, after which a workflow without `name` is called. Files that `build` and `run` name
// are looked for in `directory`, the folder of the file. Problems go to `diagnostics`; the result
// then has what could be understood.
YamlPtr long_form(const YamlNode& top, const std::string& file, const std::string& directory,
                  Diagnostics& diagnostics);

}  // namespace tally
