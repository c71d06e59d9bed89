// The device that a command runs on.
#pragma once

#include <memory>
#include <string>

#include "src/config/config.h"
#include "src/device/compute_options.h"
#include "src/measure/record.h"

namespace tally::train {

// Chooses the device that `config` asks for, checks that it computes in the precision, and makes a
// stream on it; device, threads and attention back end are written to `record`. Throws InputError.
std::unique_ptr<Stream> open_device(const Config& config, Record* record);

// One sentence on GPU kernels that the run does without and why, as open_device() found it; empty
// where it lacks none.
std::string kernel_notice(const Record& record);

// How the operations of the explicit model compute: what `config` asks for.
ComputeOptions compute_options(const Config& config);

}  // namespace tally::train
