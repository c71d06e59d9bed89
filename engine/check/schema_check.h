// Checks keys and values against the schema table. Internal to check/.
#pragma once

#include "engine/base/diagnostics.h"
#include "engine/read/document.h"
#include "engine/workflow/rules.h"

namespace tally {

// The rules of a file: Tally's if any of its elements or keys belongs to Tally's own language,
// unless the program was called by the name jube.
Rules rules_of(const Element& root, bool called_as_jube);

// Reports unknown keys and elements, values that are not allowed, and missing values. Unknown names
// and values that JUBE ignores are warnings unless `strict`. An unknown XML element is an error, as
// in JUBE.
void check_schema(const Element& root, bool strict, bool is_xml, Diagnostics& diagnostics);

// Checks only the sets in a file that other files take sets from.
void check_set_schema(const Element& root, bool strict, bool is_xml, Diagnostics& diagnostics);

// Describes an element in messages: "parameter 'bind'", "step".
std::string describe(const Element& element);

}  // namespace tally
