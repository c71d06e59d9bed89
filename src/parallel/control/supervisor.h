// A process that starts ranks and watches them: --nproc-per-node and --prefix-output.
#pragma once

#include "src/parallel/control/launch.h"

namespace tally::train {

// Starts `processes` ranks of this program on this host with the same arguments (`argv`, ended by
// null) and waits for them. Their environment gives their ranks, in torchrun's variables; `outer`
// is this process's own rank: one of outer.size that each start as many. With options.prefix every
// line of their output begins with "[rank3]: ". Signals that ask to stop are passed on, and ranks
// stopped by SIGSTOP are continued to handle them. Ranks that have not ended options.stop_seconds()
// later are killed. When a rank fails, the others, which the rendezvous notifies, get three seconds
// to end. When a signal kills one, the others learn it from here, and one of them reports it; this
// process does so where none can. Returns the exit code of the run: that of the rank that failed
// first; when a signal killed it, 1, or 3 where the host had no memory left.
int supervise(int processes, const LaunchOptions& options, const Launch& outer, char** argv);

}  // namespace tally::train
