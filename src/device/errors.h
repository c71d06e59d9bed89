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

}  // namespace tally::train
