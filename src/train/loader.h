// Moves micro batches from a sample source to the device.
#pragma once

#include <memory>

#include "src/config/config.h"
#include "src/data/batches.h"
#include "src/device/arena.h"
#include "src/model/stage.h"
#include "src/parallel/communicator.h"

namespace tally::train {

// Reads this process's micro batches from sample `consumed` on, into memory that `stream` copies
// from. `hold`: see BatchLoader. `stream` outlives it.
std::unique_ptr<BatchLoader> make_loader(const Config& config, const Communicator& communicator,
                                         Stream& stream, std::shared_ptr<const SampleSource> source,
                                         int64_t consumed, int hold);

// Enqueues the copy of a micro batch to the device, and sets its host-side fields. `host` must not
// change until the copy is done.
void copy_batch(Stream& stream, const HostBatch& host, Batch* batch);
// The same for the loader's next micro batch.
void load(Stream& stream, BatchLoader* loader, Batch* batch);

// A micro batch's device memory, with the tensors that the run's flags ask for.
class DeviceBatch : public Batch {
 public:
  DeviceBatch(const Config& config, Stream& stream);

 private:
  Arena arena_;
};

}  // namespace tally::train
