// SideQueue on a GPU.
#pragma once

#include <memory>

#include "src/ops/side_queue.h"

namespace tally::train::cuda {

std::unique_ptr<SideQueue> make_side_queue(Stream& stream);

}  // namespace tally::train::cuda
