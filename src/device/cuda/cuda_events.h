// StreamEvents and pinned memory on a GPU.
#pragma once

#include <memory>

#include "src/device/events.h"

namespace tally::train::cuda {

std::unique_ptr<StreamEvents> make_events(Stream& stream, int count);
void* allocate_host(size_t bytes);  // throws OutOfMemory
void release_host(void* data);

}  // namespace tally::train::cuda
