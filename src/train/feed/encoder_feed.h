// Micro batches of encoders on the device: without padding as one row of all real tokens, or as
// padded rows. Samples of equal length are rows of that length either way: attention then needs no
// borders between them.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "src/config/config.h"
#include "src/data/encoders/encoder_loader.h"
#include "src/device/arena.h"
#include "src/device/events.h"
#include "src/train/feed/loader.h"

namespace tally::train {

// The arrangement of tokens.
struct FeedOptions {
  bool pad = false;
  // Padded rows have a multiple of so many tokens, at most --seq-length, and the longest sample.
  int64_t row_step = 1;
};
// --pad: rows of --seq-length. On a GPU also where attention within documents is unfused, which
// computes a row's scores as a whole: rows of few different lengths.
FeedOptions feed_options(const Config& config, Stream& stream);

// The arrays of one micro batch, as Batch describes them, in host memory.
struct EncoderArrays {
  int64_t rows = 0, columns = 0;  // shape of ids
  bool packed = false;            // there are positions
  std::vector<int32_t> ids, token_types, positions, cu_seqlens, firsts, lengths, masked;
  std::array<std::vector<int32_t>, 2> labels;
  LabelCounts counted{};
  int64_t real_tokens = 0;
};
// Throws std::runtime_error with one sentence where a token is not in the vocabulary.
void lay_out(const EncoderBatch& batch, const ModelConfig& model, const FeedOptions& options,
             EncoderArrays* out);

// Moves arrays to the device.
class EncoderUpload {
 public:
  // `slots`: copies that may be under way. `config` and `stream` outlive it.
  EncoderUpload(const Config& config, Stream& stream, int64_t slots);
  // Enqueues the copy. The tensors of *batch are valid until the next call.
  void put(const EncoderArrays& arrays, Batch* batch);

 private:
  Tensor put(const std::vector<int32_t>& values, int32_t* host, int64_t* at) const;

  const Config& config_;
  Stream& stream_;
  const int64_t slots_, slot_numbers_;
  HostMemory host_;  // [slots, slot_numbers]
  Arena arena_;
  Tensor device_;  // [slot_numbers]
  int64_t copies_ = 0;
};

class EncoderFeed final : public MicroBatches {
 public:
  // `hold`: see BatchLoader. `config` and `stream` outlive it.
  EncoderFeed(const Config& config, const BatchOrder& order, Stream& stream,
              std::shared_ptr<const EncoderSource> source, int hold);

  void load(Batch* batch) override;
  LabelCounts counted(int64_t micro_batches) override;
  double tokens_per_sample() const override;

 private:
  const Config& config_;
  const FeedOptions options_;
  EncoderLoader loader_;
  EncoderUpload upload_;
  EncoderArrays arrays_;
  int64_t loaded_ = 0;
  double real_tokens_ = 0;
};

}  // namespace tally::train
