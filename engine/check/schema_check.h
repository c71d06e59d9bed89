// Checks keys and values against the schema table. Internal to check/.
#pragma once

#include "engine/base/diagnostics.h"
#include "engine/read/document.h"

namespace tally {

// Whether any element or key of the tree belongs to Tally's own language. All mistakes are then
// errors.
bool uses_tally_keys(const Element& root);

// Reports unknown keys and elements, values that are not allowed, and missing values. Unknown names
// and values that JUBE ignores are warnings unless `strict`. An unknown XML element is an error, as
// in JUBE.
void check_schema(const Element& root, bool strict, bool is_xml, Diagnostics& diagnostics);

// The same, only for the sets in a file that other files take sets from.
void check_set_schema(const Element& root, bool strict, bool is_xml, Diagnostics& diagnostics);

// Describes an element in messages: "parameter 'bind'", "step".
std::string describe(const Element& element);

}  // namespace tally
