// Turns a site's description of its cluster (`platform:`) into the sets that run steps use.
// Internal to check/.
#pragma once

#include <string>
#include <vector>

#include "engine/base/diagnostics.h"
#include "engine/read/document.h"

namespace tally {

// The names of these sets, in the order in which a step uses them: systemParameter (what a job
// requests), executeset (how it is submitted), executesub and jobfiles (its script).
const std::vector<std::string>& platform_sets();

// Every element that holds a `platform` gets the four sets that the platform describes. They are
// the sets of its template (`init_with`) with the site's values. Tags must have been applied. More
// than one remaining platform in a file is an error.
void add_platform_sets(Element* root, Diagnostics& diagnostics);

}  // namespace tally
