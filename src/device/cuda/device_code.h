#pragma once

namespace tally::train::cuda {

// Whether this build's kernels can run on the current device.
bool has_device_code();

}  // namespace tally::train::cuda
