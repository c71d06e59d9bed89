// Which of several ways to do the same is the fastest on a GPU, by timing. The clock is the
// caller's, so that tests can simulate a GPU.
#pragma once

#include <cstddef>
#include <functional>

namespace tally::train {

// Milliseconds a run, of `runs` runs of one way back to back; infinity when it does not run.
using TimeRuns = std::function<double(size_t way, int runs)>;

// The best of `ways`; `ways` when none runs. Each is run once, which also loads its kernels and
// tunes what it is made of, then timed twice; the best of them take turns of some milliseconds.
// Those that come close to the best then, and take long enough to matter, take turns of a fifth of
// a second: a large GPU at its power limit lowers its clock, and of two kernels the one that wins a
// short burst may be the one that draws more and loses in a training step
// (bench/notes/autotune.md). `before_long` is called before such turns.
size_t autotune(size_t ways, const TimeRuns& time, const std::function<void()>& before_long);

}  // namespace tally::train
