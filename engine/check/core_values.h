// Plain YAML values in files of our own. Internal to check/.
#pragma once

#include "engine/base/diagnostics.h"
#include "engine/read/document.h"

namespace tally {

// Gives the values in `root`, the document's own or a copy, that YAML 1.2 reads in another way than
// JUBE's PyYAML what they are in YAML 1.2, with a remark where that may matter.
void use_core_values(const Document& document, Element* root, Diagnostics& diagnostics);

}  // namespace tally
