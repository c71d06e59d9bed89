#include "src/train/feed/loader.h"

#include "src/device/events.h"
#include "src/train/feed/encoder_feed.h"

namespace tally::train {

namespace {

class TokenFeed final : public MicroBatches {
 public:
  TokenFeed(const Config& config, Stream& stream, std::unique_ptr<BatchLoader> loader)
      : config_(config), stream_(stream), loader_(std::move(loader)) {}
  void load(Batch* batch) override { copy_batch(stream_, loader_->next(), batch); }
  LabelCounts counted(int64_t micro_batches) override { return {loader_->counted(micro_batches)}; }
  double tokens_per_sample() const override { return static_cast<double>(config_.sequence); }

 private:
  const Config& config_;
  Stream& stream_;
  std::unique_ptr<BatchLoader> loader_;
};

}  // namespace

std::unique_ptr<MicroBatches> make_loader(const Config& config, const Communicator& communicator,
                                          Stream& stream, const Samples& samples, int64_t consumed,
                                          int hold) {
  BatchOrder order;
  order.micro_batch = config.micro_batch;
  order.sequence = config.sequence;
  order.data_parallel_rank = communicator.rank();
  order.data_parallel_size = communicator.size();
  order.consumed_samples = consumed;
  if (samples.sequences)
    return std::make_unique<EncoderFeed>(config, order, stream, samples.sequences, hold);
  // The loader asks once, and its memory lives as long as the loader.
  auto memory = std::make_shared<std::unique_ptr<HostMemory>>();
  BatchLoader::Memory from;
  from.allocate = [memory, &stream](size_t bytes) {
    *memory = std::make_unique<HostMemory>(stream, bytes);
    return (*memory)->data();
  };
  from.release = [memory](void*) { memory->reset(); };
  return std::make_unique<TokenFeed>(
      config, stream,
      std::make_unique<BatchLoader>(samples.tokens, order, std::move(from),
                                    config.micro_batches_ahead(), hold));
}

void copy_batch(Stream& stream, const HostBatch& host, Batch* batch) {
  const auto copy = [&](const Tensor& to, const int32_t* from) {
    if (from) stream.copy(to.data, from, to.bytes());
  };
  copy(batch->ids, host.ids);
  copy(batch->labels[0], host.targets);
  copy(batch->positions, host.positions);
  copy(batch->cu_seqlens, host.cu_seqlens);
  batch->counted[0] = host.counted;
}

DeviceBatch::DeviceBatch(const Config& c, Stream& stream) : arena_(stream) {
  if (!c.model.language_model()) return;
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
