// The files that an analyser reads. Private to check/.
#pragma once

#include "engine/read/document.h"
#include "engine/workflow/workflow.h"

namespace tally {

// Adds an `analyse` to its analyser. Two of one step make one, and a file that is named twice with
// the same pattern sets is read once, as in JUBE.
void add_analyse(const Element& element, Analyser* analyser);

}  // namespace tally
