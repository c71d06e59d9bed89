// Plain YAML values in files of Tally's own language.
#pragma once

#include "engine/base/diagnostics.h"
#include "engine/check/check.h"
#include "engine/read/document.h"

namespace tally {

// Some values have one meaning in YAML 1.2 and another in JUBE's PyYAML. In `root`, which is the
// document's own root or a copy of it, keys that take a text get the text as it is written, and
// keys that take a number, a boolean or a time get the YAML 1.2 meaning. A remark is added where
// the meanings differ.
void use_core_values(const Document& document, PlainText text, Element* root,
                     Diagnostics& diagnostics);

}  // namespace tally
