// The functions of stream.h on each kind of device.
#pragma once

#include <memory>
#include <string>

#include "src/device/stream.h"

namespace tally::train::cpu {

DeviceInfo device_info();
std::unique_ptr<Stream> make_stream();

}  // namespace tally::train::cpu

namespace tally::train::cuda {

int device_count();
std::string unavailable_reason();
DeviceInfo device_info(int index);
std::string pci_address(int index);  // empty: the driver does not say
std::unique_ptr<Stream> make_stream(int index);

}  // namespace tally::train::cuda
