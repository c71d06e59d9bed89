// The PCI address of a GPU.
#pragma once

#include <string>

#include "src/device/tensor.h"

namespace tally::train {

// "0000:0f:00.0": how the driver's tools name the GPU, whatever the process sees as number 0. Empty
// on the CPU, and where the driver does not say.
std::string pci_address(Device device);

}  // namespace tally::train
