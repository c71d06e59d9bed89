// A process that starts ranks and watches them: --nproc-per-node, and --prefix-output.
#pragma once

#include "src/parallel/launch.h"

namespace tally::train {

// Starts `processes` ranks of this program on this host with the same arguments (`argv`, ended by
// null) and waits for them. Their environment says who they are, in torchrun's variables; `outer`
// is this process's own place: one of outer.size that each start as many. With options.prefix every
// line of their output begins with
// "[rank3]: ". Signals that ask to stop are passed on, and ranks that are stopped by SIGSTOP go on
// to act on them. Ranks that have not ended options.stop_seconds() later are killed. When a rank
// fails, the others, who learn it from the rendezvous, get three seconds to end. Returns the exit
// code of the run: of the rank that failed first, 1 when a signal killed it.
int supervise(int processes, const LaunchOptions& options, const Launch& outer, char** argv);

}  // namespace tally::train
