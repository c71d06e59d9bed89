// SideStream on a GPU.
#pragma once

#include <memory>

#include "src/device/side_stream.h"

namespace tally::train::cuda {

std::unique_ptr<SideStream> make_side_stream(Stream& stream);

}  // namespace tally::train::cuda
