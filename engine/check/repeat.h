// A step's `repeat`.
#pragma once

#include "engine/base/diagnostics.h"
#include "engine/read/document.h"
#include "engine/workflow/workflow.h"

namespace tally {

// `repeat: 5`, or `repeat: {min: 6, max: 30, warmup: 1, until: {metric: rate, half_width: 1%}}`.
// Needs the step's iterations.
void read_repeat(const Element& element, Step* s, Diagnostics& diagnostics);

}  // namespace tally
