// The number of processors that this process may run on and that others use.
#pragma once

#include <functional>
#include <string>

namespace tally::train {

// Processors' worth of time, rounded, that other processes took while `pause` ran, among those that
// this process may run on. `pause` must leave this process idle, for a tenth of a second or more:
// the kernel counts in hundredths. 0 where the kernel does not say. `root`: where proc/ lies.
int busy_processors(const std::function<void()>& pause, const std::string& root = "/");

}  // namespace tally::train
