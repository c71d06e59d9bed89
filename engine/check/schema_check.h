// Keys and values against the schema table. Internal to check/.
#pragma once

#include "engine/base/diagnostics.h"
#include "engine/read/document.h"

namespace tally {

// Whether any element or key of the tree is Tally's own: then every slip is an error.
bool uses_tally_keys(const Element& root);

// Reports unknown keys and elements, values that are not allowed, and missing ones. Unknown ones
// and values that JUBE passes over are warnings unless `strict`; an XML element that nobody knows
// is an error, as it is for JUBE.
void check_schema(const Element& root, bool strict, bool is_xml, Diagnostics& diagnostics);

// The same for the sets alone of a file that others take sets from.
void check_set_schema(const Element& root, bool strict, bool is_xml, Diagnostics& diagnostics);

// "parameter 'bind'", "step", for messages.
std::string describe(const Element& element);

}  // namespace tally
