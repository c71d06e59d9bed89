// What completion offers behind flags whose values are checked by resolve(), not by the parser.
#pragma once

#include "engine/base/command_spec.h"

namespace tally::train {

KnownValues flag_values();

}  // namespace tally::train
