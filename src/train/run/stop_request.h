// The reason why a run ends before its last step.
#pragma once

#include "src/train/run/failures.h"
#include "src/train/run/stop.h"
#include "src/train/run/world.h"

namespace tally::train {

// The request to stop that this process has: a signal, output that cannot be written any more, or
// the clock. The outcome is completed where there is none.
Ending stop_request(const TimeLimit& limit);

// Throws StopRequested once a signal has come. For work without steps: the rank that has the signal
// ends it for all ranks.
void throw_if_signalled();

// The ranks vote in every step whether to stop, and a vote has no reason with it. This is the
// reason of the first rank that has one. `agreed`: how the step loop ended. Collective over all
// ranks where that is a request to stop.
Ending reason_to_stop(const Ending& agreed, const TimeLimit& limit, World& world);

}  // namespace tally::train
