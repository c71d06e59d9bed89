// Plain YAML values in files of Tally's own language. Internal to check/.
#pragma once

#include "engine/base/diagnostics.h"
#include "engine/read/document.h"

namespace tally {

// Some values have one meaning in YAML 1.2 and another in JUBE's PyYAML. In `root`, which is the
// document's own root or a copy of it, these values get their YAML 1.2 meaning. A remark is added
// where the difference may matter.
void use_core_values(const Document& document, Element* root, Diagnostics& diagnostics);

}  // namespace tally
