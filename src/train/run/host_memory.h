// Whether a run on the CPU fits the host's memory. The kernel overcommits memory and then kills the
// process that uses it, without a message, so this is checked beforehand.
#pragma once

#include <cstddef>
#include <limits>
#include <string>

#include "src/config/config.h"
#include "src/device/tensor.h"

namespace tally::train {

inline constexpr size_t unknown_memory = std::numeric_limits<size_t>::max();

// Bytes that this process can still take: what the kernel reports as available, swap included,
// limited by the control groups of the process. `root`: where proc/ and sys/ are.
size_t available_memory(const std::string& root = "/");

// The reason why the processes of the run on this host (Config::local_size) do not fit into
// `available` bytes, in one sentence with what to try; empty where they fit, where it is not known,
// and on a GPU.
std::string memory_shortage(const Config& config, Device device,
                            size_t available = available_memory());

// The same before the processes are started, when the device is not known yet. On a GPU the program
// itself needs host memory.
std::string memory_shortage_before_start(const Config& config,
                                         size_t available = available_memory());

// Flags that reduce the memory of a run of `config` considerably, for a device whose free memory is
// not known: "try --micro-batch-size below 8 (the global batch stays the same), --bf16".
std::string memory_advice(const Config& config);

}  // namespace tally::train
