// The exceptions of operations. main() turns each into its own exit code. The messages state facts;
// src/train adds which flag may help.
#pragma once

#include <stdexcept>
#include <string>

namespace tally::train {

struct OutOfMemory : std::runtime_error {
  using std::runtime_error::runtime_error;
};
struct DeviceError : std::runtime_error {
  using std::runtime_error::runtime_error;
};
// This build has no code for the GPU.
struct NoDeviceCode : DeviceError {
  NoDeviceCode(const std::string& what, int gpu) : DeviceError(what), capability(gpu) {}
  int capability;  // the GPU's, as 90
};

}  // namespace tally::train
