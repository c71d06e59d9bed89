// A site's description of its cluster (`platform:`) as the sets that run steps use. Internal to
// check/.
#pragma once

#include <string>
#include <vector>

#include "engine/base/diagnostics.h"
#include "engine/read/document.h"

namespace tally {

// The names of those sets, in the order in which a step uses them: systemParameter (what a job asks
// for), executeset (how it is submitted), executesub and jobfiles (its script).
const std::vector<std::string>& platform_sets();

// Adds to the elements that hold a `platform` the four sets it stands for: those of its template
// (`init_with`), with the site's values in their place. Tags have been applied; more than one
// platform left in a file is an error.
void add_platform_sets(Element* root, Diagnostics& diagnostics);

}  // namespace tally
