// Moves micro batches from samples to the device.
#pragma once

#include <memory>

#include "src/config/config.h"
#include "src/data/tokens/batches.h"
#include "src/device/arena.h"
#include "src/model/stage.h"
#include "src/parallel/collectives/communicator.h"
#include "src/train/feed/samples.h"

namespace tally::train {

// The micro batches of this process in training order.
class MicroBatches {
 public:
  virtual ~MicroBatches() = default;
  // Enqueues the copy of the next micro batch to the device, and sets the host-side fields of
  // *batch. A language model's tensors are those of *batch; an encoder's belong to this and are
  // valid until the next call.
  virtual void load(Batch* batch) = 0;
  // Labels of each head that count in the next `micro_batches` micro batches, which are made by
  // then; at most those of a step, and only of runs that divide by labels
  // (Config::divides_by_labels()).
  virtual LabelCounts counted(int64_t micro_batches) = 0;
  // Real tokens of a sample, on average so far.
  virtual double tokens_per_sample() const = 0;
};

// Reads from sample `consumed` on, into memory that `stream` copies from. `hold`: see BatchLoader.
// `config` and `stream` outlive it.
std::unique_ptr<MicroBatches> make_loader(const Config& config, const Communicator& communicator,
                                          Stream& stream, const Samples& samples, int64_t consumed,
                                          int hold);

// Enqueues the copy of a micro batch to the device, and sets its host-side fields. `host` must not
// change until the copy is done.
void copy_batch(Stream& stream, const HostBatch& host, Batch* batch);

// A language model's micro batch in device memory, with the tensors that the run's flags ask for.
// An encoder's allocates nothing.
class DeviceBatch : public Batch {
 public:
  DeviceBatch(const Config& config, Stream& stream);

 private:
  Arena arena_;
};

}  // namespace tally::train
