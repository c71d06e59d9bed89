// Micro batches on their way from a sample source to the device.
#pragma once

#include <memory>

#include "src/config/config.h"
#include "src/data/batches.h"
#include "src/model/stage.h"
#include "src/parallel/communicator.h"

namespace tally::train {

// Reads this process's micro batches from sample `consumed` on, into memory that `stream` copies
// from. `hold`: see BatchLoader. `stream` outlives it.
std::unique_ptr<BatchLoader> make_loader(const Config& config, const Communicator& communicator,
                                         Stream& stream, std::shared_ptr<const SampleSource> source,
                                         int64_t consumed, int hold);

// Enqueues the copy of the loader's next micro batch to `batch`, and sets what is known of it.
void load(Stream& stream, BatchLoader* loader, Batch* batch);

// A micro batch's place in device memory.
struct DeviceBatch : Batch {
  DeviceBatch(const Config& config, Stream& stream);
  ~DeviceBatch();
  DeviceBatch(const DeviceBatch&) = delete;
  DeviceBatch& operator=(const DeviceBatch&) = delete;

 private:
  Stream& stream_;
};

}  // namespace tally::train
