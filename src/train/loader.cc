#include "src/train/loader.h"

#include "src/device/events.h"

namespace tally::train {

std::unique_ptr<BatchLoader> make_loader(const Config& config, const Communicator& communicator,
                                         Stream& stream, std::shared_ptr<const SampleSource> source,
                                         int64_t consumed, int hold) {
  BatchOrder order;
  order.micro_batch = config.micro_batch;
  order.sequence = config.sequence;
  order.data_parallel_rank = communicator.rank();
  order.data_parallel_size = communicator.size();
  order.consumed_samples = consumed;
  // The loader asks once; its memory lives as long as it does.
  auto memory = std::make_shared<std::unique_ptr<HostMemory>>();
  BatchLoader::Memory from;
  from.allocate = [memory, &stream](size_t bytes) {
    *memory = std::make_unique<HostMemory>(stream, bytes);
    return (*memory)->data();
  };
  from.release = [memory](void*) { memory->reset(); };
  return std::make_unique<BatchLoader>(std::move(source), order, std::move(from), 8, hold);
}

void load(Stream& stream, BatchLoader* loader, Batch* batch) {
  const HostBatch host = loader->next();
  stream.copy(batch->ids.data, host.ids, batch->ids.bytes());
  stream.copy(batch->labels[0].data, host.targets, batch->labels[0].bytes());
  batch->counted = host.counted;
}

DeviceBatch::DeviceBatch(const Config& c, Stream& stream) : stream_(stream) {
  const size_t bytes = static_cast<size_t>(c.micro_batch * c.sequence) * sizeof(int32_t);
  ids = Tensor(stream.allocate(bytes, "token ids"), DType::i32, {c.micro_batch, c.sequence});
  labels[0] = Tensor(stream.allocate(bytes, "target ids"), DType::i32, {c.micro_batch, c.sequence});
}

DeviceBatch::~DeviceBatch() {
  stream_.release(ids.data);
  stream_.release(labels[0].data);
}

}  // namespace tally::train
