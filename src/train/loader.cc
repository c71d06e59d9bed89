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
  // The loader asks once, and its memory lives as long as the loader.
  auto memory = std::make_shared<std::unique_ptr<HostMemory>>();
  BatchLoader::Memory from;
  from.allocate = [memory, &stream](size_t bytes) {
    *memory = std::make_unique<HostMemory>(stream, bytes);
    return (*memory)->data();
  };
  from.release = [memory](void*) { memory->reset(); };
  return std::make_unique<BatchLoader>(std::move(source), order, std::move(from), 8, hold);
}

void copy_batch(Stream& stream, const HostBatch& host, Batch* batch) {
  const auto copy = [&](const Tensor& to, const int32_t* from) {
    if (from) stream.copy(to.data, from, to.bytes());
  };
  copy(batch->ids, host.ids);
  copy(batch->labels[0], host.targets);
  copy(batch->positions, host.positions);
  copy(batch->cu_seqlens, host.cu_seqlens);
  batch->counted = host.counted;
}

void load(Stream& stream, BatchLoader* loader, Batch* batch) {
  copy_batch(stream, loader->next(), batch);
}

DeviceBatch::DeviceBatch(const Config& c, Stream& stream) : arena_(stream) {
  const auto make = [&](const char* what) {
    return arena_.make(DType::i32, {c.micro_batch, c.sequence}, what);
  };
  ids = make("token ids");
  labels[0] = make("labels");
  if (c.data.reset_position_ids) positions = make("positions");
  if (c.data.reset_attention_mask)
    cu_seqlens = arena_.make(DType::i32, {c.micro_batch * c.sequence + 1}, "documents");
}

}  // namespace tally::train
