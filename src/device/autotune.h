// Autotune: chooses the fastest of several equivalent algorithms on a GPU by timing. The caller
// provides the clock, so that tests can simulate a GPU.
#pragma once

#include <cstddef>
#include <functional>

namespace tally::train {

// Milliseconds per run, of `runs` runs of one algorithm back to back; infinity when it does not
// run.
using TimeRuns = std::function<double(size_t way, int runs)>;

// The index of the best of `ways` algorithms; `ways` when none runs. Each is run once, which also
// loads its kernels and tunes what it calls, and then timed twice. The best take turns of some
// milliseconds. Algorithms that are close to the best then, and take long enough to matter, take
// turns of a fifth of a second: a large GPU at its power limit lowers its clock, and the kernel
// that wins a short burst may draw more power and lose in a training step
// (bench/notes/autotune.md). `before_long` is called before such turns.
size_t autotune(size_t ways, const TimeRuns& time, const std::function<void()>& before_long);

}  // namespace tally::train
