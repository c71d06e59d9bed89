#include "src/device/pci_address.h"

#include "src/device/backends.h"

namespace tally::train {

std::string pci_address(Device device) {
#ifdef TALLY_WITH_CUDA
  if (device.is_cuda()) return cuda::pci_address(device.index);
#endif
  (void)device;
  return "";
}

}  // namespace tally::train
