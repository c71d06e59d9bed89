#include "src/device/pci_address.h"

#include "src/device/devices.h"

namespace tally::train {

std::string pci_address(Device device) {
  return device.is_cuda() ? gpus()->pci_address(device.index) : "";
}

}  // namespace tally::train
