// Whether a run on the CPU fits the host's memory. The kernel gives memory away before it has it
// and then kills the process that takes it: without a sentence, so that it is asked beforehand.
#pragma once

#include <cstddef>
#include <limits>
#include <string>

#include "src/config/config.h"
#include "src/device/tensor.h"

namespace tally::train {

inline constexpr size_t unknown_memory = std::numeric_limits<size_t>::max();

// Bytes that this process can still take: what the kernel says is available, swap included, and no
// more than the control groups around the process allow. `root`: where proc/ and sys/ lie.
size_t available_memory(const std::string& root = "/");

// What weights, gradients and the optimizer's state of this process need at least; the weights
// alone with --skip-train.
size_t training_bytes(const Config& config);

// Why the processes of the run on this host do not fit, in a sentence; empty where they do, where
// it is not known, and on a GPU.
std::string memory_shortage(const Config& config, Device device);

}  // namespace tally::train
