// Small encoders with odd sizes, and micro batches of sequences of different lengths, padded or
// not.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "tests/train/model/tiny_gpt.h"

namespace tally::train {

inline Config tiny_encoder(const std::string& kind, Task task, DType type = DType::f64) {
  Config c = tiny_config(type);
  c.model.set_kind(kind);
  c.model.task = task;
  c.model.layernorm_epsilon = 1e-12;
  c.model.classes = 3;
  c.model.classifier_dropout = 0;
  c.sequence = 19;
  c.micro_batch = 4;
  return c;
}

// A micro batch in device memory; with `padded` rows of T tokens, else one row of all tokens.
class TinyEncoderBatch {
 public:
  TinyEncoderBatch(const Config& c, Stream& s, uint64_t seed, bool padded)
      : config_(c), stream_(s), random_(seed), padded_(padded) {
    const bool pretraining = c.model.task == Task::pretraining;
    for (int64_t row = 0; row < c.micro_batch; ++row) add_sequence(row);
    const int64_t tokens = static_cast<int64_t>(ids_.size());
    const int64_t rows = padded ? c.micro_batch : 1;
    batch.ids = make(ids_, {rows, tokens / rows});
    if (c.model.kind() == "bert") batch.token_types = make(types_, {rows, tokens / rows});
    if (!padded) batch.positions = make(positions_, {rows, tokens});
    starts_.push_back(static_cast<int32_t>(tokens));
    batch.cu_seqlens = make(starts_, {static_cast<int64_t>(starts_.size())});
    batch.firsts = make(firsts_, {c.micro_batch});
    batch.lengths = make(lengths_, {c.micro_batch});
    batch.rows = make(masked_, {static_cast<int64_t>(masked_.size())});
    batch.labels[0] = make(first_, {static_cast<int64_t>(first_.size())});
    batch.labels[1] = make(second_, {c.micro_batch});
    batch.counted = {count(first_), count(second_)};
    if (!pretraining) batch.rows = Tensor();
  }
  ~TinyEncoderBatch() {
    for (void* p : owned_) stream_.release(p);
  }
  TinyEncoderBatch(const TinyEncoderBatch&) = delete;
  TinyEncoderBatch& operator=(const TinyEncoderBatch&) = delete;

  Batch batch;

 private:
  int32_t below(int64_t n) { return static_cast<int32_t>(random_() % static_cast<uint64_t>(n)); }
  static int64_t count(const std::vector<int32_t>& labels) {
    int64_t n = 0;
    for (const int32_t label : labels) n += label >= 0 ? 1 : 0;
    return n;
  }

  // The first fills its row, and the others are shorter.
  void add_sequence(int64_t row) {
    const auto length =
        static_cast<int32_t>(row == 0 ? config_.sequence : 3 + below(config_.sequence - 3));
    const auto first = static_cast<int32_t>(ids_.size());
    firsts_.push_back(first);
    lengths_.push_back(length);
    starts_.push_back(first);
    for (int32_t i = 0; i < length; ++i) {
      ids_.push_back(below(config_.model.vocabulary));
      types_.push_back(i > length / 2 ? 1 : 0);
      positions_.push_back(i);
      if (config_.model.task == Task::pretraining && i % 4 == 2) {
        masked_.push_back(first + i);
        first_.push_back(below(config_.model.vocabulary));
      }
    }
    if (config_.model.task == Task::classification)
      first_.push_back(row == 2 ? -1 : below(config_.model.classes));
    if (config_.model.task == Task::question_answering)
      first_.push_back(row == 2 ? -1 : below(length));
    second_.push_back(below(config_.model.task == Task::question_answering ? length : 2));
    if (!padded_ || length == config_.sequence) return;
    starts_.push_back(first + length);
    for (int64_t i = length; i < config_.sequence; ++i) {
      ids_.push_back(0);
      types_.push_back(0);
    }
  }

  Tensor make(const std::vector<int32_t>& values, std::initializer_list<int64_t> shape) {
    owned_.push_back(stream_.allocate(values.size() * 4 + 4, "batch"));
    Tensor t(owned_.back(), DType::i32, shape);
    stream_.copy(t.data, values.data(), values.size() * 4);
    stream_.synchronize();
    return t;
  }

  const Config& config_;
  Stream& stream_;
  std::mt19937_64 random_;
  const bool padded_;
  std::vector<void*> owned_;
  std::vector<int32_t> ids_, types_, positions_, starts_, firsts_, lengths_, masked_, first_,
      second_;
};

}  // namespace tally::train
